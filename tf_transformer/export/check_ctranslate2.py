"""Compares a CTranslate2 folder with the translator from which it was exported."""

import os
import pathlib
import re
from collections.abc import Sequence

from tf_transformer.config import Quantization
from tf_transformer.export import check_standalone, to_ctranslate2
from tf_transformer.inference.translator import Translator

# Largest relative difference of a given translation's score. In float32 only the order of sums
# differs. All further types round the weights.
SCORE_TOLERANCE = {
    "float32": 1e-3,
    "float16": 0.05,
    "bfloat16": 0.1,
    "int8": 0.3,
    "int8_float16": 0.3,
}
PROCESSOR = pathlib.Path("/proc/cpuinfo")  # of Linux; other systems have no such file


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
    tolerance = SCORE_TOLERANCE[quantization]
    different, summary = check_standalone.compared(folder, translator, sentences, tolerance)
    most = check_standalone.MAX_DIFFERENT * len(sentences)
    if quantization == "float32" and len(different) > most:
        raise RuntimeError(f"the export differs from the run it came from: {summary}.")
    return "; ".join([summary, *to_ctranslate2.notes(translator.config), *notes(quantization)])


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
