"""Writes ONNX models of one translator to a folder, with each weight stored once."""

import pathlib
from collections.abc import Iterator, Mapping

import onnx
from onnx.external_data_helper import set_external_data

from tf_transformer.export.onnx_loops import bodies

FILE = "weights.bin"
SMALLEST = 1024  # bytes of a weight outside of the file of its model
_ALIGNMENT = 4096  # bytes; runtimes map pages of the file into memory


def write(models: Mapping[str, onnx.ModelProto], folder: pathlib.Path) -> None:
    """Writes models by the names of their files; those of several share the file of weights.

    The weights leave the models.
    """
    if len(models) > 1:
        with open(folder / FILE, "wb") as file:
            places: dict[bytes, int] = {}
            for model in models.values():
                for weight in weights_of(model.graph):
                    content = weight.raw_data
                    if content not in places:
                        file.write(bytes(-file.tell() % _ALIGNMENT))
                        places[content] = file.tell()
                        file.write(content)
                    set_external_data(weight, FILE, places[content], len(content))
                    weight.ClearField("raw_data")
    for name, model in models.items():
        (folder / name).write_bytes(model.SerializeToString())


def weights_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The large weights of a graph and of the graphs in it."""
    yield from (x for x in graph.initializer if len(x.raw_data) >= SMALLEST)
    for node in graph.node:
        for body in bodies(node):
            yield from weights_of(body)
