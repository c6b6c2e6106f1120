"""Compares a folder for LiteRT with the translator from which it was exported."""

import pathlib
from collections.abc import Sequence

from tf_transformer.config import Quantization
from tf_transformer.export import check_standalone, to_litert
from tf_transformer.inference.translator import Translator

# Largest relative difference of a score. In float32 only the order of sums differs. The other
# dtypes round the weights, and int8 also the inputs of products.
SCORE_TOLERANCE = {"float32": 1e-3, "float16": 0.02, "int8": 0.3}


def check(
    folder: pathlib.Path,
    translator: Translator,
    sentences: Sequence[str],
    quantization: Quantization,
) -> str:
    """Runs a folder in a fresh process, compares it with the translator, and returns a summary.

    Raises a `RuntimeError` when the scores of the translator's translations differ by more than the
    tolerance of the weights' dtype. So do, in float32, the scores of different translations: two
    translations may be equally likely but for rounding.
    """
    tolerance = SCORE_TOLERANCE[quantization]
    different, summary = check_standalone.compared(folder, translator, sentences, tolerance)
    for sentence, (text, score), (other, other_score) in different:
        is_near = check_standalone.difference(score, other_score) <= tolerance
        if quantization == "float32" and not is_near:
            raise RuntimeError(
                f"the export differs from the run it came from. Source: {sentence!r}; translation "
                f"of the run: {text!r}, score {score:.4f}; of the export: {other!r}, score "
                f"{other_score:.4f}."
            )
    return f"{summary}; {(folder / to_litert.FILE).stat().st_size / 1e6:.1f} MB"
