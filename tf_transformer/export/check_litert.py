"""Compares a folder for LiteRT with the translator from which it was exported."""

import pathlib
import shutil
from collections.abc import Sequence

from tf_transformer.config import Quantization
from tf_transformer.export import metadata, standalone, to_litert
from tf_transformer.files.writing import as_lines, one_line
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run

# Largest relative difference of a score. In float32 only the order of sums differs. The other
# dtypes round the weights, and int8 also the inputs of products.
SCORE_TOLERANCE = {"float32": 1e-3, "float16": 0.02, "int8": 0.3}


def write_checked(
    run: Run, translator: Translator, folder: pathlib.Path, quantization: Quantization
) -> str:
    """Writes and checks the folder of a run's translator; returns a summary."""
    facts = metadata.describe(run, translator)
    sentences = standalone.sentences_for(run, translator)
    for stored in dict.fromkeys(("float32", quantization)):  # as for CTranslate2
        shutil.rmtree(folder, ignore_errors=True)
        to_litert.write(translator, folder, stored, facts)
        summary = check(folder, translator, sentences, stored)
    return f"{summary}; {(folder / to_litert.FILE).stat().st_size / 1e6:.1f} MB"


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
    translations = translator(sentences)
    texts = [one_line(translation.text) for translation in translations]
    others = standalone.run(folder, sentences)
    shown = [one_line(other["translation"]) for other in others]
    standalone.require_spans(translator.config, sentences, shown)
    scores = [pair.score for pair in translator.score(sentences, texts)]
    given = standalone.run(folder, sentences, "translations", as_lines(texts))
    rescored = [row["score"] for row in given]
    tolerance = SCORE_TOLERANCE[quantization]
    of_given = list(map(difference, scores, rescored))
    n = max(range(len(sentences)), key=of_given.__getitem__)
    if of_given[n] > tolerance:
        raise RuntimeError(
            f"the export differs from the run it came from. Source: {sentences[n]!r}; translation: "
            f"{texts[n]!r}; its score in the run: {scores[n]:.4f}, in the export: "
            f"{rescored[n]:.4f}. In {quantization} the tolerance is {tolerance}."
        )
    different = 0
    rows = zip(sentences, translations, texts, others, shown, strict=True)
    for sentence, best, text, other, other_text in rows:
        if other_text == text:
            continue
        different += 1
        if quantization == "float32" and difference(best.score, other["score"]) > tolerance:
            raise RuntimeError(
                f"the export differs from the run it came from. Source: {sentence!r}; translation "
                f"of the run: {text!r}, score {best.score:.4f}; of the export: "
                f"{other_text!r}, score {other['score']:.4f}."
            )
    return (
        f"{different} of {len(sentences)} translations differ from the run, scores of the same "
        f"translations by at most {of_given[n]:.1e}"
    )


def difference(score: float, other: float) -> float:
    """The relative difference of two scores; absolute for scores near 0."""
    return abs(score - other) / max(1.0, abs(score))
