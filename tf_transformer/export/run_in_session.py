"""Runs a SavedModel as TF Serving does: python export/run_in_session.py served/x/1 < in.txt.

The program loads the model into a session. It needs tensorflow and tensorflow_text, but not this
project. For each line of stdin, it prints the outputs of `serving_default` as one JSON object.

With --requests, each line of stdin is a request to any signature, in the format of TF Serving's
REST interface: {"signature_name": "score", "inputs": {"source": ["one"], "target": ["eins"]}}.
The answers have the form {"outputs": {...}}.

With --wait, the program loads the model after the first line of stdin, which it leaves out.

The program reads text like the commands, because it runs files of this project by their paths.
"""

import json
import os
import pathlib
import runpy
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # other processes may use the GPU

USAGE = "usage: python export/run_in_session.py SAVED_MODEL [--requests] [--wait] < LINES"
BATCH_SIZE = 32


class InputError(ValueError):
    """An error that the user can correct."""


class SavedModel:
    """The SavedModel of a folder in a session."""

    def __init__(self, path: str):
        if not pathlib.Path(path, "saved_model.pb").is_file():
            raise InputError(
                f"{path} is not a SavedModel on this machine. Make one: python -m export."
            )
        _run_module("machine/imports.py")["import_tensorflow"]()
        import tensorflow as tf

        load_text_ops()
        tf.get_logger().setLevel("ERROR")
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        try:
            with self._session.graph.as_default():
                loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], path)
        except (tf.errors.OpError, OSError, LookupError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"the SavedModel {path} is broken: {reason:.300}. Export the run again."
            ) from error
        self._signatures = loaded.signature_def
        self._process = os.getpid()

    def __call__(
        self, signature_name: str, inputs: Mapping[str, Sequence[str | bytes]]
    ) -> dict[str, np.ndarray]:
        """The outputs (B, ...) by name of a signature, from texts by the name of the input."""
        if os.getpid() != self._process:
            raise InputError("TensorFlow cannot compute in a fork. Load the model in each worker.")
        if signature_name not in self._signatures:
            raise InputError(
                f"unknown signature {signature_name!r}; expected one of "
                f"{', '.join(sorted(self._signatures))}."
            )
        signature = self._signatures[signature_name]
        if inputs.keys() != signature.inputs.keys():
            raise InputError(
                f"expected the inputs {sorted(signature.inputs)} of the signature "
                f"{signature_name}, got {sorted(inputs)}."
            )
        fetches = {name: tensor.name for name, tensor in signature.outputs.items()}
        columns = {name: to_bytes(name, texts) for name, texts in inputs.items()}
        if len(set(map(len, columns.values()))) > 1:
            numbers = ", ".join(f"{len(texts)} of {name}" for name, texts in columns.items())
            raise InputError(f"expected equally many texts for each input, got {numbers}.")
        feed = {signature.inputs[x].name: np.array(texts, object) for x, texts in columns.items()}
        return self._session.run(fetches, feed)


def load_text_ops() -> None:
    """Imports TensorFlow, and loads tensorflow-text's SentencePiece ops."""
    _run_module("text/sentencepiece_ops.py")["sentencepiece_ops"]()


def _run_module(path: str) -> dict[str, Any]:
    """The names of a module of this project, which is run by its path."""
    return runpy.run_path(str(pathlib.Path(__file__).parents[1] / path))


def to_bytes(name: str, texts: Sequence[str | bytes]) -> list[bytes]:
    """The texts of an input as UTF-8, with U+FFFD for a lone surrogate."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
    items: list[Any] = list(texts) if is_list else [None]
    if not all(isinstance(item, str | bytes) for item in items):
        raise InputError(f"expected a list of texts as {name}, got {texts!r:.80}.")
    return [
        item.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        if isinstance(item, str)
        else item
        for item in items
    ]


def to_json(output: np.ndarray) -> list[Any]:
    """An output as nested lists. Bytes become strings, with U+FFFD for broken UTF-8."""
    if output.dtype != object:
        return output.tolist()
    texts = [text.decode("utf-8", "replace") for text in output.flat]
    return np.array(texts, object).reshape(output.shape).tolist()


def answer_requests(model: SavedModel, lines: Iterable[bytes]) -> None:
    """Prints the answer to each request in JSON, before the next request is read."""
    for line in lines:
        try:
            request = json.loads(line)
            name, inputs = request["signature_name"], request["inputs"]
            if not (isinstance(name, str) and isinstance(inputs, dict)):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            expected = '{"signature_name": "score", "inputs": {"source": ["one"], ...}}'
            raise InputError(f"expected requests like {expected}, got {line!r:.80}.") from error
        answer = model(name, inputs)
        outputs = {name: to_json(output) for name, output in answer.items()}
        write_json({"outputs": outputs})


def answer_lines(model: SavedModel, lines: Iterable[bytes]) -> None:
    """Prints the outputs of `serving_default` for each line, strings first."""
    lines = list(lines)
    for start in range(0, len(lines), BATCH_SIZE):
        answer = model("serving_default", {"text": lines[start : start + BATCH_SIZE]})
        names = sorted(answer, key=lambda name: (answer[name].dtype != object, name))
        for values in zip(*(to_json(answer[name]) for name in names), strict=True):
            write_json(dict(zip(names, values, strict=True)))


def write_json(row: dict[str, Any]) -> None:
    """Writes a line of JSON in UTF-8, independent of the terminal's encoding."""
    sys.stdout.buffer.write(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n")


def main(*words: str) -> None:
    """Answers the lines of stdin, as the words of the command line say."""
    if {"-h", "--help"} & set(words):
        print(f"{USAGE}\n\n{__doc__}")
        return
    folders = [word for word in words if word not in ("--requests", "--wait")]
    if len(folders) != 1 or folders[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    _run_module("machine/imports.py")["import_tensorflow"]()
    if "--wait" in words:  # the model is being written, and the imports take seconds
        load_text_ops()
        sys.stdin.buffer.readline()
    answer = answer_requests if "--requests" in words else answer_lines
    text = _run_module("files/text_lines.py")
    try:
        model = SavedModel(os.path.expanduser(folders[0]))
        answer(model, text["lines_of"](text["chunks_of"](sys.stdin.buffer), text["STDIN"]))
    except (InputError, text["TextError"]) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
