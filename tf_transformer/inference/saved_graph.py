"""Rewrites the graph of a SavedModel, so that a process that loads it answers sooner.

TensorFlow copies and optimizes all functions of a graph several times until the first answer.
"""

import os
import pathlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.machine.rare_functions import MARK

_SHAPES = "_output_shapes"  # TensorFlow infers them again


def rewrite(path: str | os.PathLike) -> None:
    """Rewrites `saved_model.pb` in the folder of a SavedModel. Its answers stay the same."""
    file = pathlib.Path(path, "saved_model.pb")
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for meta_graph in model.meta_graphs:
        fixed = _captured(meta_graph.object_graph_def)
        for function in meta_graph.graph_def.library.function:
            _share_constants(function, fixed[function.signature.name])
            _shorten_names(function, fixed[function.signature.name])
        _mark_callees(meta_graph.graph_def)
    file.write_bytes(model.SerializeToString(deterministic=True))


def _captured(objects: Any) -> defaultdict[str, set[str]]:
    """The names of nodes that the objects of a SavedModel need, by function."""
    names = defaultdict[str, set[str]](set)
    for node in objects.nodes:
        if node.WhichOneof("kind") == "captured_tensor":
            tensor = node.captured_tensor
            names[tensor.concrete_function].add(tensor.name.split(":")[0])
    return names


def _share_constants(function: Any, fixed: Collection[str]) -> None:
    """Leaves one of equal constants of a function, where tracing made one for each use."""
    names: dict[Any, str] = {}  # the kept name of each constant
    shared: dict[str, str] = {}  # the kept name of each constant that is left out
    nodes = function.node_def
    for index, node in reversed(list(enumerate(nodes))):
        node.attr.pop(_SHAPES, None)
        if node.op == "Const" and not node.input and node.name not in fixed:
            content = node.device, node.attr["value"].SerializeToString(deterministic=True)
            if (name := names.setdefault(content, node.name)) != node.name:
                shared[node.name] = name
                del nodes[index]
    _rename(function, shared)


def _shorten_names(function: Any, fixed: Collection[str]) -> None:
    """Names each node of a function by its operation and its place; names are a third of a graph.

    TensorFlow gives no names with a point, so the new ones are free.
    """
    nodes = (x for x in enumerate(function.node_def) if x[1].name not in fixed)
    _rename(function, {node.name: f"{node.op.lstrip('_')}.{index}" for index, node in nodes})


def _rename(function: Any, names: Mapping[str, str]) -> None:
    """Gives nodes of a function other names, also where they are inputs and results."""

    def renamed(tensor: str) -> str:
        control = "^" * tensor.startswith("^")
        node, *output = tensor.removeprefix("^").split(":", 1)
        return control + ":".join([names.get(node, node), *output])

    for node in function.node_def:
        node.name = renamed(node.name)
        node.input[:] = map(renamed, node.input)
    for results in (function.ret, function.control_ret):
        for name, tensor in list(results.items()):
            results[name] = renamed(tensor)


def _mark_callees(graph: Any) -> None:
    """Marks the functions that only rare functions call, such as their loops.

    TensorFlow forgets to leave out these functions.
    """
    functions = {function.signature.name: function for function in graph.library.function}
    rare = {name for name, function in functions.items() if function.attr[MARK].b}
    common: set[str] = set()
    waiting = set(_called(graph.node))
    while waiting:
        common |= waiting
        called = {name for x in waiting for name in _called(functions[x].node_def)}
        waiting = called - common - rare
    for name in functions.keys() - common:
        functions[name].attr[MARK].b = True


def _called(nodes: Iterable[Any]) -> Iterator[str]:
    """The names of functions that nodes of a graph call."""
    for node in nodes:
        for attribute in node.attr.values():
            yield from filter(None, [attribute.func.name, *(x.name for x in attribute.list.func)])
