"""Runs a SavedModel as a server does, and compares it with the predictor that was exported."""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from tf_transformer.config.decode import REQUIRED
from tf_transformer.decoding import NEG_INF
from tf_transformer.export.warm_up import signature_inputs
from tf_transformer.inference.dtypes import dtype_of
from tf_transformer.inference.predictor import Predictor, SignatureCase
from tf_transformer.machine.gpus import WITHOUT_GPUS
from tf_transformer.run.run import Run
from tf_transformer.text.target_tag import split_tag

# The check reads these beside samples from the validation examples.
ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]
# An export that keeps spans also translates these.
WITH_SPANS = (
    "See https://example.org/a?b=c or write to me@example.org.",
    "It weighs 5 kg, <b>{name}</b> says.",
    "<i>I have %d messages.</i> &nbsp; <p>🙂 Thank you!</p><p>Yes.</p>",
)
# Largest difference of scores. The SavedModel pads batches differently, which changes rounding.
SCORE_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.05}
# Largest fraction of sentences with different answers. Rounding also decides near ties, which are
# frequent in sampling.
MAX_DIFFERENT = {"float32": 0.0, "bfloat16": 0.5, "int8": 0.0}
MAX_DIFFERENT_SAMPLING = {"float32": 0.1, "bfloat16": 1.0, "int8": 1.0}


def sentences_for(run: Run, predictor: Predictor) -> list[str]:
    """The sentences that checks of an export of the run translate.

    Each has one of the languages in turn if the predictor needs one.
    """
    more = WITH_SPANS if predictor.config.keep else ()
    sentences = [*run.folder.load_samples(), *ODD_SENTENCES, *more]
    if predictor.config.target_tag != REQUIRED:
        return sentences
    tags = predictor.codec["source"].tags
    pairs = zip(sentences, itertools.cycle(sorted(tags)), strict=False)
    return [text if split_tag(text, tags)[0] else f"{tag} {text}" for text, tag in pairs]


class Request(NamedTuple):
    """A request in the format of TF Serving's REST interface."""

    signature_name: str
    inputs: dict[str, list[str]]


@dataclass(frozen=True)
class Session:
    """A process of `run_in_session.py`; `session` starts it."""

    process: subprocess.Popen
    output: IO[bytes]  # the file with its standard output
    errors: IO[bytes]  # the file with its errors

    def load(self) -> None:
        """Lets the process load the SavedModel."""
        self._write("\n")

    def send(self, requests: Sequence[Request]) -> None:
        """Sends requests after `load`. The process answers them while this one goes on."""
        self._write("".join(json.dumps(request._asdict()) + "\n" for request in requests))

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs for each request, by name; waits for them, and ends the process."""
        self.process.communicate()
        for file in (self.output, self.errors):
            file.seek(0)
        output, errors = self.output.read().decode("utf-8"), self.errors.read().decode("utf-8")
        if self.process.returncode:
            raise RuntimeError(f"the export does not run in a session:\n{errors}")
        return [json.loads(line)["outputs"] for line in output.split("\n")[:-1]]

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # `outputs` reports a process that has failed
            if self.process.stdin:
                self.process.stdin.write(text.encode())
                self.process.stdin.flush()


@contextlib.contextmanager
def session(saved_model: pathlib.Path) -> Iterator[Session]:
    """Starts a process, which imports TensorFlow while this one writes the SavedModel.

    It computes on the CPU, because a training run may hold the memory of all GPUs.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    words = [sys.executable, str(program), str(saved_model), "--requests", "--wait"]
    with (
        # A full pipe would stop the process until this one reads, so the outputs go to files.
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            env=os.environ | WITHOUT_GPUS,
        ) as process,
    ):
        yield Session(process, output, errors)


class Answer(NamedTuple):
    """The outputs of a signature for one sentence."""

    texts: list[str]  # the first string of each output of strings
    scores: list[float]  # all numbers of all outputs


def check(
    session: Session, saved_model: pathlib.Path, predictor: Predictor, sentences: Sequence[str]
) -> dict[str, SignatureCase]:
    """Runs all signatures of a SavedModel in a fresh process, and compares their outputs.

    Returns:
        the outputs of the predictor.

    Raises:
        RuntimeError: when the process fails, or too many answers differ from the predictor's.
    """
    requests = [
        Request(name, {inputs[0]: list(sentences)})
        for name, inputs in signature_inputs(saved_model).items()
        if len(inputs) == 1
    ]
    session.load()
    session.send(requests)  # it answers while the predictor does
    cases = predictor.signatures(sentences)
    wanted = [Request(name, dict(case.inputs)) for name, case in cases.items()]
    later = [request for request in wanted if request not in requests]
    session.send(later)
    results = dict(zip([name for name, _ in requests + later], session.outputs(), strict=True))
    for name, case in cases.items():
        answered = answers({output: results[name][output] for output in case.outputs})
        compare(name, predictor, sentences, answers(case.outputs), answered)
    return cases


def answers(outputs: Mapping[str, Sequence[Any]]) -> list[Answer]:
    """The outputs of a signature by sentence.

    If a sentence has several strings, only the first counts, because rounding may swap later
    strings. The score `NEG_INF` of an empty place is left out.
    """
    rows = []
    for row in zip(*(outputs[name] for name in sorted(outputs)), strict=True):
        lists = [list(value) if isinstance(value, list | tuple) else [value] for value in row]
        texts = [values[0] for values in lists if isinstance(values[0], str)]
        numbers = [x for values in lists for x in values if not isinstance(x, str)]
        rows.append(Answer(texts, [x for x in numbers if x != NEG_INF]))
    return rows


def compare(
    signature: str,
    predictor: Predictor,
    sentences: Sequence[str],
    expected: Sequence[Answer],
    outputs: Sequence[Answer],
) -> None:
    """Raises a `RuntimeError` when more answers differ than rounding explains.

    It shows the first answer that differs from the `expected` answer of the predictor.
    """
    dtype = dtype_of(predictor.model)
    tolerance = SCORE_TOLERANCE[dtype]
    differences = [
        f"Input: {sentence!r}; run: {a.texts} {a.scores}; export: {b.texts} {b.scores}."
        for sentence, a, b in zip(sentences, expected, outputs, strict=True)
        if a.texts != b.texts
        or len(a.scores) != len(b.scores)
        or not all(abs(x - y) <= tolerance for x, y in zip(a.scores, b.scores, strict=True))
    ]
    fractions = MAX_DIFFERENT_SAMPLING if predictor.config.sampling else MAX_DIFFERENT
    if len(differences) > fractions[dtype] * len(sentences):
        raise RuntimeError(
            f"the export differs from the run it came from: {len(differences)} of "
            f"{len(sentences)} answers of the signature {signature}. {differences[0]}"
        )
