"""Whether a SavedModel gives what the translator that it came from gives."""

import json
import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

# Batches are padded differently, and rounding with them. It moves scores by less than this,
SCORE_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}
# and decides near ties, of which draws at random have many: how many sentences may differ.
MAY_DIFFER = {"float32": 0.0, "bfloat16": 0.5}
MAY_DIFFER_IF_DRAWN = {"float32": 0.1, "bfloat16": 1.0}


class Answer(NamedTuple):
    """What a signature gives for a sentence."""

    text: str  # the best translation
    scores: list[float]  # of all translations, best first

    def agrees_with(self, other: "Answer", tolerance: float) -> bool:
        """Whether both are the same but for rounding."""
        return (
            self.text == other.text
            and len(self.scores) == len(other.scores)
            and all(abs(a - b) <= tolerance for a, b in zip(self.scores, other.scores, strict=True))
        )


def check(saved_model: pathlib.Path, translator: "Translator", sentences: list[str]) -> None:
    """Compares all signatures of a SavedModel, run in a fresh process, with the translator.

    Raises:
        RuntimeError: when the process fails, or more translations or scores differ than may.
    """
    expected, best = expected_answers(translator, sentences)
    found = served_answers(saved_model, sentences, best)
    for signature, answers in expected.items():
        compare(signature, translator, sentences, answers, found[signature])


def expected_answers(
    translator: "Translator", sentences: list[str]
) -> tuple[dict[str, list[Answer]], list[str]]:
    """What each signature has to give, and the best translations, which `score` is asked for."""
    n_best = translator.n_best(sentences)
    best = [row[0].text for row in n_best]
    pairs = translator.score(sentences, best)
    answers = {
        "serving_default": [Answer(row[0].text, [row[0].score]) for row in n_best],
        "n_best": [Answer(row[0].text, [each.score for each in row]) for row in n_best],
        "score": [Answer(text, list(pair)) for text, pair in zip(best, pairs, strict=True)],
    }
    return answers, best


def served_answers(
    saved_model: pathlib.Path, sentences: list[str], targets: list[str]
) -> dict[str, list[Answer]]:
    """What each signature gives in a session."""
    from tf_transformer.decoding import NEVER

    single, several, pairs = in_session(
        saved_model,
        {"signature_name": "serving_default", "inputs": {"text": sentences}},
        {"signature_name": "n_best", "inputs": {"text": sentences}},
        {"signature_name": "score", "inputs": {"source": sentences, "target": targets}},
    )
    return {
        "serving_default": [
            Answer(text, [score])
            for text, score in zip(single["translation"], single["score"], strict=True)
        ],
        "n_best": [
            Answer(texts[0], [score for score in scores if score != NEVER])
            for texts, scores in zip(several["translations"], several["scores"], strict=True)
        ],
        "score": [
            Answer(text, list(pair))
            for text, *pair in zip(targets, pairs["score"], pairs["log_probability"], strict=True)
        ],
    }


def in_session(saved_model: pathlib.Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of `run_in_session.py`, in a process of its own, for each request.

    Raises:
        RuntimeError: when it fails.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    process = subprocess.run(
        [sys.executable, str(program), str(saved_model), "--requests"],
        input="".join(json.dumps(request) + "\n" for request in requests).encode(),
        capture_output=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"the export does not run in a session:\n{process.stderr.decode()}")
    lines = process.stdout.decode("utf-8").split("\n")[:-1]
    return [json.loads(line)["outputs"] for line in lines]


def compare(
    signature: str,
    translator: "Translator",
    sentences: list[str],
    expected: list[Answer],
    found: list[Answer],
) -> None:
    """Refuses answers that differ more often than rounding explains.

    Raises:
        RuntimeError: with the first difference.
    """
    dtype = translator.model.compute_dtype
    tolerance = SCORE_TOLERANCE[dtype]
    differences = [
        f"Source: {sentence!r}; run: {a.text!r} {a.scores}; export: {b.text!r} {b.scores}."
        for sentence, a, b in zip(sentences, expected, found, strict=True)
        if not a.agrees_with(b, tolerance)
    ]
    may_differ = MAY_DIFFER_IF_DRAWN if translator.config.sampling else MAY_DIFFER
    if len(differences) > may_differ[dtype] * len(sentences):
        raise RuntimeError(
            f"the export differs from the run it came from, in {signature} {len(differences)} of "
            f"{len(sentences)} times. {differences[0]}"
        )
