"""Whether a CTranslate2 folder gives what the translator that it came from gives."""

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

from tf_transformer.config import Quantization
from tf_transformer.files import one_line
from tf_transformer.translator import Translator

# The largest difference of a given translation's score, for each unit of the score. Float32 leaves
# nothing but the order of sums; the others round weights, and a model of any size feels that.
SCORE_TOLERANCE = {
    "float32": 1e-3,
    "float16": 0.05,
    "bfloat16": 0.1,
    "int8": 0.3,
    "int8_float16": 0.3,
}
# Near ties, of which a model that has hardly been trained has many, may end the other way.
MAY_DIFFER = 0.5


class Agreement(NamedTuple):
    """How a folder agrees with the translator it came from."""

    sentences: int
    different: int  # translations
    score_difference: float  # largest, of the same translations
    largest: str  # which that is

    def __str__(self) -> str:
        return (
            f"{self.different} of {self.sentences} translations differ from the run's, "
            f"scores of the same ones by at most {self.score_difference:.1e}"
        )


def check(
    folder: pathlib.Path,
    translator: Translator,
    sentences: Sequence[str],
    quantization: Quantization,
) -> Agreement:
    """Compares a folder, run in a fresh process, with the translator it came from.

    Raises:
        RuntimeError: when scores of the same translations differ by more than rounding does, or
            most translations differ.
    """
    agreement = compare(folder, translator, sentences)
    if agreement.score_difference > SCORE_TOLERANCE[quantization]:
        raise RuntimeError(
            f"the export differs from the run it came from. {agreement.largest} At most "
            f"{SCORE_TOLERANCE[quantization]} is rounding in {quantization}."
        )
    if quantization == "float32" and agreement.different > MAY_DIFFER * len(sentences):
        raise RuntimeError(f"the export differs from the run it came from: {agreement}.")
    return agreement


def compare(folder: pathlib.Path, translator: Translator, sentences: Sequence[str]) -> Agreement:
    """Both systems' translations, and both systems' scores of the translator's."""
    ours = [one_line(each.text) for each in translator(sentences)]
    theirs = [one_line(row["translation"]) for row in run(folder, sentences)]
    expected = translator.score(sentences, ours)
    found = [row["score"] for row in run(folder, sentences, ours)]
    differences = [
        abs(a.score - b) / max(1.0, abs(a.score)) for a, b in zip(expected, found, strict=True)
    ]
    worst = max(range(len(differences)), key=differences.__getitem__)
    return Agreement(
        sentences=len(sentences),
        different=sum(a != b for a, b in zip(ours, theirs, strict=True)),
        score_difference=differences[worst],
        largest=(
            f"Source: {sentences[worst]!r}; translation: {ours[worst]!r}; its score in the run: "
            f"{expected[worst].score:.4f}, in the export: {found[worst]:.4f}."
        ),
    )


def run(
    folder: pathlib.Path, sentences: Sequence[str], translations: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """What run_in_ctranslate2.py prints, in a process that has no TensorFlow.

    Raises:
        RuntimeError: when the process fails.
    """
    program = pathlib.Path(__file__).with_name("run_in_ctranslate2.py")
    with tempfile.TemporaryDirectory() as temporary:
        words = [sys.executable, str(program), str(folder)]
        if translations is not None:
            file = pathlib.Path(temporary) / "translations"
            file.write_bytes(as_lines(translations))
            words.append(str(file))
        process = subprocess.run(words, input=as_lines(sentences), capture_output=True, check=False)
    if process.returncode:
        raise RuntimeError(f"the export does not run in CTranslate2:\n{process.stderr.decode()}")
    return [json.loads(line) for line in process.stdout.decode("utf-8").split("\n")[:-1]]


def as_lines(texts: Sequence[str]) -> bytes:
    """Each with a newline."""
    return "".join(text + "\n" for text in texts).encode("utf-8")
