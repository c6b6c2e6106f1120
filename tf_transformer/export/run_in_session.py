"""Runs a SavedModel as TF Serving does: python export/run_in_session.py served/x/1 < in.txt.

Loads it into a session, in a process that imports tensorflow, tensorflow_text and nothing of this
project. Prints a JSON object for each line of stdin: what `serving_default` gives for it. With
--requests each line is a request instead, as TF Serving's REST interface takes it, to any
signature: {"signature_name": "score", "inputs": {"source": ["one"], "target": ["eins"]}}; printed
is {"outputs": {...}}.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops

BATCH_SIZE = 32


class SavedModel:
    """A SavedModel in a session.

    Args:
        path: its folder.
    """

    def __init__(self, path: str):
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], path)
        self._signatures = loaded.signature_def

    def __call__(
        self, signature_name: str, inputs: Mapping[str, Sequence[str | bytes]]
    ) -> dict[str, np.ndarray]:
        """The outputs of a signature, by name."""
        signature = self._signatures[signature_name]
        fetches = {name: tensor.name for name, tensor in signature.outputs.items()}
        feed = {
            signature.inputs[name].name: np.array(
                [text.encode() if isinstance(text, str) else text for text in texts], object
            )
            for name, texts in inputs.items()
        }
        return self._session.run(fetches, feed)


def readable(output: np.ndarray) -> list[Any]:
    """An output as JSON has it."""
    if output.dtype != object:
        return output.tolist()
    texts = [text.decode("utf-8", "replace") for text in output.flat]
    return np.array(texts, object).reshape(output.shape).tolist()


def main(path: str, requests: bool) -> None:
    """Answers stdin: lines, BATCH_SIZE at a time, or requests."""
    model = SavedModel(path)
    lines = [line.removesuffix(b"\n") for line in sys.stdin.buffer]
    if requests:
        for request in map(json.loads, lines):
            found = model(request["signature_name"], request["inputs"])
            outputs = {name: readable(output) for name, output in found.items()}
            print(json.dumps({"outputs": outputs}, ensure_ascii=False))
        return
    for start in range(0, len(lines), BATCH_SIZE):
        found = model("serving_default", {"text": lines[start : start + BATCH_SIZE]})
        names = sorted(found, key=lambda name: (found[name].dtype != object, name))  # text first
        for values in zip(*(readable(found[name]) for name in names), strict=True):
            print(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1], requests="--requests" in sys.argv[2:])
