"""Functions of a graph that few batches call: TensorFlow prepares them when they run.

Before the first call of a graph, TensorFlow optimizes it with all functions that it may call. That
takes seconds for functions which most calls never need. It leaves out the functions of `tf.data`,
which it optimizes when they run. `RARE_FUNCTION` marks a function in the same way.
"""

import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2

_MARK = "_tf_data_function"
RARE_FUNCTION = {"_noinline": True, _MARK: True}
"""The attributes of a `tf.function` that few batches call."""


def mark_callees(path: str | os.PathLike) -> None:
    """Marks the functions of a SavedModel that only rare functions call, such as their loops.

    TensorFlow forgets to leave out these functions.
    """
    file = pathlib.Path(path, "saved_model.pb")
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        functions = {function.signature.name: function for function in graph.library.function}
        rare = {name for name, function in functions.items() if function.attr[_MARK].b}
        common: set[str] = set()
        waiting = set(_called(graph.node))
        while waiting:
            common |= waiting
            called = {name for x in waiting for name in _called(functions[x].node_def)}
            waiting = called - common - rare
        for name in functions.keys() - common:
            functions[name].attr[_MARK].b = True
    file.write_bytes(model.SerializeToString(deterministic=True))


def _called(nodes: Iterable[Any]) -> Iterator[str]:
    """The names of functions that nodes of a graph call."""
    for node in nodes:
        for attribute in node.attr.values():
            yield from filter(None, [attribute.func.name, *(x.name for x in attribute.list.func)])
