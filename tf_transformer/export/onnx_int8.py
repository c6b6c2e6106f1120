"""Stores the weights of an ONNX graph in int8.

A weight is q · s: q is int8, and s is float32, one number for each output of a product, or for each
row of a table. Activations stay float32 in the file. A runtime may round them, too; onnxruntime
does so on CPUs, in blocks of 32 numbers.
"""

import math

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tf_transformer.export.onnx_loops import bodies

SMALLEST = 64 * 64 + 1  # rotations of positions have fewer numbers


def round_weights(model: onnx.ModelProto) -> None:
    """Rounds the matrices of products and the tables of a model with float32 weights to int8."""
    rounding = _Rounding(model.graph)
    rounding.of_graph(model.graph)
    rounded, kept = rounding.rounded, model.graph.initializer
    for n in reversed(range(len(kept))):
        if kept[n].name in rounded:
            del kept[n]


class _Rounding:
    """The weights of a graph, and the names of those that are in int8."""

    def __init__(self, main: onnx.GraphProto):
        self._main = main
        self._weights = {
            tensor.name: tensor
            for tensor in main.initializer
            if tensor.data_type == onnx.TensorProto.FLOAT
            and len(tensor.dims) == 2
            and math.prod(tensor.dims) >= SMALLEST
        }
        self._stored: set[str] = set()
        self.rounded: set[str] = set()

    def of_graph(self, graph: onnx.GraphProto) -> None:
        """Rounds the weights of a graph's nodes, and of the graphs in them."""
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            for body in bodies(node):
                self.of_graph(body)
            if node.op_type == "MatMul" and node.input[1] in self._weights:
                nodes += self._of_product(node, graph)
            elif node.op_type == "Gather" and node.input[0] in self._weights:
                nodes += self._of_table(node)
            else:
                nodes.append(node)
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)

    def _of_product(self, node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        """The product x W as x (q · s). The matrix stands in the graph of the node.

        onnxruntime makes one product of both nodes, but not with a matrix of an outer graph.
        """
        q, s = self._in_int8(node.input[1], 1, graph)
        node.input[1] = f"{node.output[0]}/weights"
        return [helper.make_node("DequantizeLinear", [q, s], [node.input[1]], axis=1), node]

    def _of_table(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The rows of q at these ids, each times its s."""
        q, s = self._in_int8(node.input[0], 0, self._main)
        ids, result = node.input[1], node.output[0]
        row, factor, real = (f"{result}/{name}" for name in ("row", "factor", "real"))
        return [
            helper.make_node("Gather", [q, ids], [row], axis=0),
            helper.make_node("Gather", [s, ids], [factor], axis=0),  # (..., 1)
            helper.make_node("Cast", [row], [real], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [real, factor], [result]),
        ]

    def _in_int8(self, name: str, axis: int, graph: onnx.GraphProto) -> list[str]:
        """The names of q and s in a graph, with one number s for each index of the axis."""
        names = [f"{graph.name}/{name}/{part}{axis}" for part in "qs"]
        self.rounded.add(name)
        if names[0] not in self._stored:
            self._stored.add(names[0])
            weights = numpy_helper.to_array(self._weights[name])
            s = np.abs(weights).max(axis=1 - axis, keepdims=True) / np.float32(127)
            q = np.rint(weights / np.where(s, s, 1)).astype(np.int8)
            s = s if axis == 0 else s[0]
            graph.initializer.extend(map(numpy_helper.from_array, (q, s), names))
        return names
