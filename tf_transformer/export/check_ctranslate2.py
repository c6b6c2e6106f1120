"""Compares a CTranslate2 folder with the translator from which it was exported."""

import os
import pathlib
import re
import shutil
from collections.abc import Sequence

from tf_transformer.config import Quantization
from tf_transformer.export import metadata, standalone, to_ctranslate2
from tf_transformer.files.writing import as_lines, one_line
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run

# Largest relative difference of a given translation's score. In float32 only the order of sums
# differs. All further types round the weights.
SCORE_TOLERANCE = {
    "float32": 1e-3,
    "float16": 0.05,
    "bfloat16": 0.1,
    "int8": 0.3,
    "int8_float16": 0.3,
}
# Largest fraction of different translations. Both systems may decide near ties differently, and a
# model with little training has many near ties.
MAX_DIFFERENT = 0.5
PROCESSOR = pathlib.Path("/proc/cpuinfo")  # of Linux; other systems have no such file


def write_checked(
    run: Run, translator: Translator, folder: pathlib.Path, quantization: Quantization
) -> str:
    """Writes and checks the folder of a run's translator; returns a summary."""
    facts = metadata.describe(run, translator)
    sentences = standalone.sentences_for(run, translator)
    # Rounded weights change scores. The same weights in float32 show first that the rest is right.
    for stored in dict.fromkeys(("float32", quantization)):
        shutil.rmtree(folder, ignore_errors=True)
        to_ctranslate2.write(translator, folder, stored, facts)
        summary = check(folder, translator, sentences, stored)
    return "; ".join([summary, *to_ctranslate2.notes(translator.config), *notes(quantization)])


def check(
    folder: pathlib.Path,
    translator: Translator,
    sentences: Sequence[str],
    quantization: Quantization,
) -> str:
    """Runs a folder in a fresh process, compares it with the translator, and returns a summary.

    Raises a `RuntimeError` when the scores of the translator's translations differ by more than the
    tolerance of the weights' dtype, the quantization, or when most translations differ.
    """
    texts = [one_line(translation.text) for translation in translator(sentences)]
    others = [one_line(row["translation"]) for row in standalone.run(folder, sentences)]
    scores = [pair.score for pair in translator.score(sentences, texts)]
    given = standalone.run(folder, sentences, "translations", as_lines(texts))
    rescored = [row["score"] for row in given]
    differences = [abs(a - b) / max(1.0, abs(a)) for a, b in zip(scores, rescored, strict=True)]
    n = max(range(len(differences)), key=differences.__getitem__)
    if differences[n] > SCORE_TOLERANCE[quantization]:
        raise RuntimeError(
            f"the export differs from the run it came from. Source: {sentences[n]!r}; translation: "
            f"{texts[n]!r}; its score in the run: {scores[n]:.4f}, in the export: "
            f"{rescored[n]:.4f}. "
            f"In {quantization} the tolerance is {SCORE_TOLERANCE[quantization]}."
        )
    different = sum(a != b for a, b in zip(texts, others, strict=True))
    summary = (
        f"{different} of {len(sentences)} translations differ from the run, scores of the same "
        f"translations by at most {differences[n]:.1e}"
    )
    if quantization == "float32" and different > MAX_DIFFERENT * len(sentences):
        raise RuntimeError(f"the export differs from the run it came from: {summary}.")
    return summary


def notes(quantization: Quantization) -> list[str]:
    """What the user of an int8 model must know about this processor.

    On processors that are not Intel's, CTranslate2 multiplies with oneDNN. Without VNNI
    instructions, oneDNN adds pairs of products in 16 bits, which saturate.
    """
    processor = PROCESSOR.read_text("utf-8") if PROCESSOR.is_file() else ""
    of_x86 = re.search(r"^vendor_id\s*: (.*)$[\s\S]*?^flags\s*: (.*)$", processor, re.MULTILINE)
    uses_mkl = os.environ.get("CT2_USE_MKL", "").lower() in ("1", "true")
    if not quantization.startswith("int8") or not of_x86 or uses_mkl:
        return []
    vendor, instructions = of_x86[1], set(of_x86[2].split())
    if vendor == "GenuineIntel" or instructions & {"avx512_vnni", "avx_vnni"}:
        return []
    return [
        "this processor is not Intel's and has no VNNI instructions, so CTranslate2 computes int8 "
        "products less exactly: set CT2_USE_MKL=1 in the environment of the program that translates"
    ]
