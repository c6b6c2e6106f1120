"""Scores of translations by sacreBLEU: BLEU, chrF and TER, with confidence intervals.

A difference between two systems is tested by paired bootstrap resampling (Koehn 2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sacrebleu
from sacrebleu.significance import PairedTest

from tf_transformer.errors import InputError


@dataclass(frozen=True)
class ScoreOptions:
    """How given translations are scored.

    Attributes:
        tokenize: sacreBLEU's tokenisation for BLEU; none: the text is tokenised, with spaces
            between the tokens.
        lowercase: whether upper and lower case are equal, in all scores.
        ter: whether the translation edit rate is computed, which takes seconds.
        resamples: samples of the bootstrap; 0: no confidence interval and no test.

    Raises:
        InputError: for a negative number.
    """

    tokenize: Literal["13a", "intl", "char", "none"] = "13a"
    lowercase: bool = False
    ter: bool = False
    resamples: int = 0

    def __post_init__(self):
        if self.resamples < 0:
            raise InputError(f"resamples must not be negative, got {self.resamples}.")


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    options: ScoreOptions = ScoreOptions(),
    baseline: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Scores of translations against one or more references for each.

    Args:
        hypotheses: translations.
        references: lists of references; each has one for every translation.
        options: how to score.
        baseline: translations of another system, to compare with.

    Returns:
        bleu and chrf: sacreBLEU's, 0 to 100; signature: the recipe of bleu; exact_match: percentage
        of translations equal to one of their references; sentences: their number; ter, if it is
        asked for. With resamples: bleu_interval, the limits of 95 percent. With a baseline:
        baseline_bleu, and with resamples p_value, the probability of such a difference in BLEU
        between equal systems.

    Raises:
        InputError: when there is nothing to score, or the numbers of texts differ.

    Example:
        >>> found = score_translations(["a b c d"], [["a b c d"], ["e"]])
        >>> round(found["bleu"]), found["exact_match"]
        (100, 100.0)
    """
    _check_numbers(hypotheses, references, baseline)
    tokenised = options.tokenize == "none"
    bleu = sacrebleu.BLEU(options.lowercase, force=tokenised, tokenize=options.tokenize)
    found = bleu.corpus_score(hypotheses, references, n_bootstrap=options.resamples or 1)
    chrf = sacrebleu.CHRF(lowercase=options.lowercase)
    matches = sum(text in expected for text, *expected in zip(hypotheses, *references, strict=True))
    scores: dict[str, Any] = {
        "bleu": found.score,
        "signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(hypotheses, references).score,
        "exact_match": 100.0 * matches / len(hypotheses),
        "sentences": len(hypotheses),
    }
    if options.ter:
        ter = sacrebleu.TER(case_sensitive=not options.lowercase)
        scores["ter"] = ter.corpus_score(hypotheses, references).score
    if options.resamples:
        scores["bleu_interval"] = [found._mean - found._ci, found._mean + found._ci]
    if baseline is not None:
        scores |= _compared(hypotheses, references, baseline, bleu, options.resamples)
    return scores


def _compared(hypotheses, references, baseline, bleu, resamples: int) -> dict[str, float]:
    """The score of a baseline, and the test of the difference."""
    found = {"baseline_bleu": bleu.corpus_score(baseline, references).score}
    if resamples:
        systems = [("baseline", baseline), ("system", hypotheses)]
        test = PairedTest(systems, {"BLEU": bleu}, references, "bs", resamples)
        _, results = test()
        of_system: Any = results["BLEU"][1]
        is_equal = list(baseline) == list(hypotheses)  # sacreBLEU gives these the smallest value
        found["p_value"] = 1.0 if is_equal else of_system.p_value
    return found


def _check_numbers(hypotheses, references, baseline) -> None:
    if not hypotheses and not any(references):
        raise InputError("expected at least one translation and its reference, got none.")
    others = {"a reference": references, "a translation of the baseline": [baseline]}
    for name, lists in others.items():
        for texts in lists:
            if texts is not None and len(texts) != len(hypotheses):
                raise InputError(
                    f"expected {name} for each of {len(hypotheses)} translations, got {len(texts)}."
                )
