"""Converts a SavedModel to one LiteRT file. A program, because the converter may end its process.

The weights become constants, without which the converter finds no searches. So each signature is
converted alone, and the files are merged: a weight that several of them have is stored once.

The converter is that of `tf.lite`. Its successor, the package litert-converter, takes graphs of JAX
and torch only (version 0.5).
"""

import json
import pathlib
import sys
from typing import Any

import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

OF_SUBGRAPHS = ("condSubgraphIndex", "bodySubgraphIndex", "thenSubgraphIndex", "elseSubgraphIndex")
"""The fields of an operation's options that number subgraphs."""


def convert(graphs: str, weights: str) -> bytes:
    """The file with all signatures of a SavedModel; `weights` is float32, float16 or int8."""
    loaded, merged = tf.saved_model.load(graphs), MergedFile()
    for name, function in loaded.signatures.items():
        if name == "serving_default":  # the first one again, which Keras adds
            continue
        frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
        if weights != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if weights == "float16":
            converter.target_spec.supported_types = [tf.float16]
        inputs = [tensor.name.partition(":")[0] for tensor in frozen.inputs]
        merged.add(name, converter.convert(), inputs, sorted(function.structured_outputs))
    return merged.content()


class MergedFile:
    """Files with one signature each, merged to one file with equal buffers stored once."""

    def __init__(self) -> None:
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.description = b"tf_transformer"
        self._model.buffers = [schema.BufferT()]  # the first one is empty
        self._model.subgraphs, self._model.operatorCodes, self._model.signatureDefs = [], [], []
        self._buffers = {b"": 0}  # their numbers by content
        self._codes: dict[Any, int] = {}  # numbers of operations by name and version

    def add(self, signature: str, file: bytes, inputs: list[str], outputs: list[str]) -> None:
        """Adds a file. The names are those of the inputs and outputs of its first subgraph."""
        model = flatbuffer_utils.convert_bytearray_to_object(bytearray(file))
        buffers = [self._buffer(buffer) for buffer in model.buffers]
        codes = list(map(self._code, model.operatorCodes))
        first = len(self._model.subgraphs)
        for subgraph in model.subgraphs:
            for tensor in subgraph.tensors:
                tensor.buffer, tensor.name = buffers[tensor.buffer], b""  # names are long
            for operator in subgraph.operators or ():
                operator.opcodeIndex = codes[operator.opcodeIndex]
                for field in OF_SUBGRAPHS:
                    if hasattr(operator.builtinOptions, field):
                        number = getattr(operator.builtinOptions, field)
                        setattr(operator.builtinOptions, field, first + number)
        self._model.subgraphs += model.subgraphs
        main, definition = model.subgraphs[0], schema.SignatureDefT()
        definition.signatureKey, definition.subgraphIndex = signature.encode(), first
        definition.inputs = list(map(_named, inputs, main.inputs))
        definition.outputs = list(map(_named, outputs, main.outputs))
        self._model.signatureDefs.append(definition)

    def content(self) -> bytes:
        """The merged file."""
        return bytes(flatbuffer_utils.convert_object_to_bytearray(self._model))

    def _buffer(self, buffer: schema.BufferT) -> int:
        content = b"" if buffer.data is None else bytes(buffer.data)
        if content not in self._buffers:
            self._buffers[content] = len(self._model.buffers)
            self._model.buffers.append(buffer)
        return self._buffers[content]

    def _code(self, code: schema.OperatorCodeT) -> int:
        key = code.builtinCode, code.deprecatedBuiltinCode, code.customCode, code.version
        if key not in self._codes:
            self._codes[key] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(code)
        return self._codes[key]


def _named(name: str, tensor: int) -> schema.TensorMapT:
    place = schema.TensorMapT()
    place.name, place.tensorIndex = name.encode(), tensor
    return place


if __name__ == "__main__":
    work = json.load(sys.stdin)
    content = convert(work["graphs"], work["weights"])
    pathlib.Path(work["to"]).write_bytes(content)
    print(json.dumps(len(content)))
