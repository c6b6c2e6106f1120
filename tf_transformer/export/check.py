"""Compares a SavedModel, run as a server runs it, with the predictor from which it was exported."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tf_transformer.decoding import NEG_INF
from tf_transformer.export.session import Request, Session
from tf_transformer.export.warm_up import signature_inputs
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


def check(
    session: Session, saved_model: pathlib.Path, predictor: Predictor, sentences: Sequence[str]
) -> None:
    """Runs all signatures of a SavedModel in a fresh process, and compares their outputs.

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


def answers(outputs: Mapping[str, Sequence[Any]]) -> list[Answer]:
    """The outputs of a signature by sentence.

    If a sentence has several strings, only the first counts, because rounding may swap later
    strings. The score `NEG_INF` of an empty place is left out.
    """
    found = []
    for row in zip(*(outputs[name] for name in sorted(outputs)), strict=True):
        lists = [list(value) if isinstance(value, list | tuple) else [value] for value in row]
        texts = [values[0] for values in lists if isinstance(values[0], str)]
        numbers = [x for values in lists for x in values if not isinstance(x, str)]
        found.append(Answer(texts, [x for x in numbers if x != NEG_INF]))
    return found


def compare(
    signature: str,
    predictor: Predictor,
    sentences: Sequence[str],
    expected: Sequence[Answer],
    outputs: Sequence[Answer],
) -> None:
    """Compares the answers of a signature with the `expected` answers of the predictor.

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
