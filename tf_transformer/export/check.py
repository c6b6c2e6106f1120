"""Compares a SavedModel, run as a server runs it, with the predictor from which it was exported."""

import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tf_transformer.decoding import NEG_INF
from tf_transformer.inference.predictor import Predictor

# Largest difference of scores. The SavedModel pads batches differently, which changes rounding.
SCORE_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}
# Largest fraction of sentences with different answers. Rounding also decides near ties, which are
# frequent in sampling.
MAX_DIFFERENT = {"float32": 0.0, "bfloat16": 0.5}
MAX_DIFFERENT_SAMPLING = {"float32": 0.1, "bfloat16": 1.0}


class Answer(NamedTuple):
    """The outputs of a signature for one sentence."""

    texts: list[str]  # the first string of each output of strings
    scores: list[float]  # all numbers of all outputs

    def agrees_with(self, other: "Answer", tolerance: float) -> bool:
        """Whether the texts are equal and the scores differ by at most the tolerance."""
        return (
            self.texts == other.texts
            and len(self.scores) == len(other.scores)
            and all(abs(a - b) <= tolerance for a, b in zip(self.scores, other.scores, strict=True))
        )


def check(process: subprocess.Popen, predictor: Predictor, sentences: Sequence[str]) -> None:
    """Runs all signatures of a SavedModel in a fresh process, and compares their outputs.

    Args:
        process: the process from `prepare_session`, whose SavedModel is written.
        predictor: the predictor from which it was exported.
        sentences: the check sentences.

    Raises:
        RuntimeError: when the process fails, or too many answers differ.
    """
    load(process)  # while the predictor answers
    cases = predictor.signatures(sentences)
    requests = [
        {"signature_name": name, "inputs": dict(case.inputs)} for name, case in cases.items()
    ]
    results = ask(process, requests)
    for (name, case), outputs in zip(cases.items(), results, strict=True):
        answered = answers({output: outputs[output] for output in case.outputs})
        compare(name, predictor, sentences, answers(case.outputs), answered)


def answers(outputs: Mapping[str, Sequence[Any]]) -> list[Answer]:
    """The outputs of a signature by sentence.

    If a sentence has several strings, only the first counts, because rounding may swap later
    strings. The score `NEG_INF` of an empty place is left out.
    """
    names = sorted(outputs)
    rows = zip(*(outputs[name] for name in names), strict=True)
    return [_answer(row) for row in rows]


def _answer(row: Sequence[Any]) -> Answer:
    lists = [list(value) if isinstance(value, list | tuple) else [value] for value in row]
    return Answer(
        texts=[values[0] for values in lists if isinstance(values[0], str)],
        scores=[
            value
            for values in lists
            for value in values
            if not isinstance(value, str) and value != NEG_INF
        ],
    )


def prepare_session(saved_model: pathlib.Path) -> subprocess.Popen:
    """Starts a fresh process that imports TensorFlow, and runs `run_in_session.py` after `load`.

    The import takes seconds. Meanwhile this process can write the SavedModel.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    return subprocess.Popen(
        [sys.executable, str(program), str(saved_model), "--requests", "--wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def load(process: subprocess.Popen) -> None:
    """Lets a process from `prepare_session` load its SavedModel."""
    with contextlib.suppress(BrokenPipeError):  # `ask` reports a process that has failed
        if process.stdin:
            process.stdin.write(b"\n")
            process.stdin.flush()


def ask(process: subprocess.Popen, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sends requests to a process, and waits for its end.

    Args:
        process: the process from `prepare_session`, after `load`.
        requests: requests in the format of TF Serving's REST interface.

    Returns:
        the outputs for each request, by name.

    Raises:
        RuntimeError: when the process fails.
    """
    text = "".join(json.dumps(request) + "\n" for request in requests)
    output, errors = process.communicate(text.encode())
    if process.returncode:
        raise RuntimeError(f"the export does not run in a session:\n{errors.decode()}")
    return [json.loads(line)["outputs"] for line in output.decode("utf-8").split("\n")[:-1]]


def compare(
    signature: str,
    predictor: Predictor,
    sentences: Sequence[str],
    expected: Sequence[Answer],
    outputs: Sequence[Answer],
) -> None:
    """Compares the answers of a signature with the answers of the predictor.

    Args:
        signature: name of the signature, for the error message.
        predictor: the predictor; its dtype and search determine the tolerance.
        sentences: the check sentences.
        expected: the answers of the predictor.
        outputs: the answers of the SavedModel.

    Raises:
        RuntimeError: when more answers differ than rounding explains. It shows the first
            difference.
    """
    dtype = predictor.model.compute_dtype
    tolerance = SCORE_TOLERANCE[dtype]
    differences = [
        f"Input: {sentence!r}; run: {a.texts} {a.scores}; export: {b.texts} {b.scores}."
        for sentence, a, b in zip(sentences, expected, outputs, strict=True)
        if not a.agrees_with(b, tolerance)
    ]
    fractions = MAX_DIFFERENT_SAMPLING if predictor.config.sampling else MAX_DIFFERENT
    if len(differences) > fractions[dtype] * len(sentences):
        raise RuntimeError(
            f"the export differs from the run it came from: {len(differences)} of "
            f"{len(sentences)} answers of the signature {signature}. {differences[0]}"
        )
