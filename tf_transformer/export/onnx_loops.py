"""Takes values that no step changes out of the loops of ONNX graphs.

A loop in TensorFlow gets each weight as a variable and gives it back. Runtimes of ONNX prepare the
weights of products once, but only weights that are known.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx
from onnx import helper


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs of a node: the body of a loop, the branches of a condition."""
    return (item.g for item in node.attribute if item.type == onnx.AttributeProto.GRAPH)


def take_out_constants(graph: onnx.GraphProto) -> None:
    """Changes the loops of a graph so that they carry only what their steps change."""
    names: dict[str, str] = {}  # of the results that are left out
    for node in graph.node:
        _rename([node], names)
        for body in bodies(node):
            take_out_constants(body)
        if node.op_type == "Loop":
            names |= _shorten(node)
    for result in graph.output:  # it keeps its name
        if result.name in names:
            graph.node.append(helper.make_node("Identity", [names[result.name]], [result.name]))


def _shorten(loop: onnx.NodeProto) -> dict[str, str]:
    """Takes unchanged variables out of a loop; returns the values of their results by name."""
    (body,) = bodies(loop)
    copied = {x.output[0]: x.input[0] for x in body.node if x.op_type == "Identity"}
    inside, after, changed = {}, {}, []
    # A loop starts with two numbers, its body with two others, and the results with a condition.
    for n, (name, start) in enumerate(zip(body.input[2:], loop.input[2:], strict=True)):
        end = body.output[n + 1].name
        while end in copied:
            end = copied[end]
        if end == name.name:
            inside[name.name], after[loop.output[n]] = start, start
        else:
            changed.append(n)
    if not changed:  # a loop has results
        return {}
    scanned = range(len(loop.input) - 2, len(loop.output))  # results of each step
    _keep(loop.output, [*changed, *scanned])
    _keep(body.output, [0, *(n + 1 for n in (*changed, *scanned))])
    _keep(loop.input, [0, 1, *(n + 2 for n in changed)])
    _keep(body.input, [0, 1, *(n + 2 for n in changed)])
    _rename(body.node, inside)
    _drop_unused_copies(body)
    return after


def _drop_unused_copies(graph: onnx.GraphProto) -> None:
    """Drops the nodes that gave unchanged variables back."""
    while True:
        read = {*_inputs(graph.node), *(result.name for result in graph.output)}
        used = [x.op_type != "Identity" or x.output[0] in read for x in graph.node]
        if all(used):
            return
        _keep(graph.node, [n for n, is_used in enumerate(used) if is_used])


def _inputs(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    """The names that nodes read, and the graphs in them read and return."""
    for node in nodes:
        yield from node.input
        for body in bodies(node):
            yield from (result.name for result in body.output)
            yield from _inputs(body.node)


def _keep(items: Any, places: list[int]) -> None:
    """Keeps the items of a repeated field at these places."""
    for n in sorted(set(range(len(items))) - set(places), reverse=True):
        del items[n]


def _rename(nodes: Any, names: Mapping[str, str]) -> None:
    """Gives the inputs of nodes, and of the graphs in them, other names."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        for body in bodies(node):
            _rename(body.node, names)
