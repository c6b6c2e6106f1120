"""Scores of translations by sacreBLEU: BLEU, chrF and TER, with confidence intervals.

A difference between two systems is tested by paired bootstrap resampling (Koehn 2004).
"""

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sacrebleu
from sacrebleu.significance import PairedTest

from tf_transformer.config import BleuTokenizer
from tf_transformer.errors import InputError
from tf_transformer.text.normalization import comparable, is_blank

FEWEST_RESAMPLES = 40  # a limit of 95 percent leaves out one sample of 40 on either side
# Scripts without spaces between words, as names of characters begin.
_WITHOUT_SPACES = "CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"
_LONG_WORD = 6  # letters that a word of these scripts rarely has


@dataclass(frozen=True)
class ScoreOptions:
    """How given outputs are scored: translations, but for the last option.

    Attributes:
        tokenize: sacreBLEU's tokenisation for BLEU; none: the text is tokenised, with spaces
            between the tokens.
        lowercase: whether upper and lower case are equal, in all scores.
        ter: whether the translation edit rate is computed, which takes seconds.
        resamples: samples of the bootstrap; 0: no confidence interval and no test.
        normalize: whether the Unicode form and the spaces of all texts are normalised first. With
            the tokenisation none, spaces stay as they are.
        label_separator: for classification, what separates the labels of a text; empty: each has
            one.

    Raises:
        InputError: for too few samples.
    """

    tokenize: BleuTokenizer = "13a"
    lowercase: bool = False
    ter: bool = False
    resamples: int = 0
    normalize: bool = True
    label_separator: str = ""

    def __post_init__(self):
        if self.resamples and self.resamples < FEWEST_RESAMPLES:
            raise InputError(
                f"resamples must be 0 or at least {FEWEST_RESAMPLES}, because an interval of 95% "
                f"leaves out one sample of {FEWEST_RESAMPLES} on either side; got {self.resamples}."
            )

    def normalized(self, text: str) -> str:
        """The text as it is scored."""
        if not self.normalize:
            return text
        return unicodedata.normalize("NFC", text) if self.tokenize == "none" else comparable(text)


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    options: ScoreOptions = ScoreOptions(),
    baseline: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Scores of translations against one or more references for each.

    Args:
        hypotheses: translations.
        references: lists of references; each has an item for every translation. A blank item is a
            missing reference, unless the translation and all its references are blank.
        options: how to score.
        baseline: translations of another system, to compare with.

    Returns:
        bleu and chrf: sacreBLEU's, 0 to 100; signature: the recipe of bleu; exact_match: percentage
        of translations equal to one of their references; sentences: their number; ter, if it is
        asked for. With resamples: bleu_interval, the limits of 95 percent. With a baseline:
        baseline_bleu, and with resamples p_value, the probability of such a difference in BLEU
        between equal systems.

    Raises:
        InputError: when there is nothing to score, the numbers of texts differ, a translation has
            no reference, or the tokenizer cannot be used.

    Example:
        >>> found = score_translations(["a b c d"], [["a b c d"], ["e"]])
        >>> found["bleu"], found["exact_match"]
        (100.0, 100.0)
    """
    _check_numbers(hypotheses, references, baseline)
    raw = hypotheses, *references
    hypotheses, *references = ([options.normalized(text) for text in texts] for texts in raw)
    given = _given(hypotheses, references)
    _warn(raw, (hypotheses, *references), options)
    bleu, chrf = bleu_of(options), sacrebleu.CHRF(lowercase=options.lowercase)
    bleu_score = bleu.corpus_score(hypotheses, given, n_bootstrap=options.resamples or 1)
    matches = _matches(hypotheses, given, options.lowercase)
    scores: dict[str, Any] = {
        "bleu": _percent(bleu_score.score),
        "signature": str(bleu.get_signature()),
        "chrf": _percent(chrf.corpus_score(hypotheses, given).score),
        "exact_match": 100.0 * matches / len(hypotheses),
        "sentences": len(hypotheses),
    }
    if options.ter:
        ter = sacrebleu.TER(case_sensitive=not options.lowercase)
        scores["ter"] = ter.corpus_score(hypotheses, given).score
    if options.resamples:
        limits = bleu_score._mean - bleu_score._ci, bleu_score._mean + bleu_score._ci
        scores["bleu_interval"] = list(map(_percent, limits))
    if baseline is not None:
        baseline = list(map(options.normalized, baseline))
        scores |= _compared(hypotheses, given, baseline, bleu, options.resamples)
    return scores


def _matches(hypotheses, references, lowercase: bool) -> int:
    """The number of translations that equal one of their references."""
    rows: Any = zip(hypotheses, *references, strict=True)
    if lowercase:
        rows = ([text if text is None else text.lower() for text in row] for row in rows)
    return sum(text in others for text, *others in rows)


def bleu_of(options: ScoreOptions) -> sacrebleu.BLEU:
    """The metric.

    Raises:
        InputError: for a tokenizer that needs a package or a download that is not there.
    """
    tokenize = options.tokenize
    try:
        return sacrebleu.BLEU(options.lowercase, force=tokenize == "none", tokenize=tokenize)
    except (ImportError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"sacreBLEU's tokenizer {tokenize} cannot be used: {reason}") from error


def _percent(score: float) -> float:
    """The score without what rounding and the symmetry of an interval add beyond 0 and 100."""
    return float(min(max(score, 0.0), 100.0))


def _compared(hypotheses, references, baseline, bleu, resamples: int) -> dict[str, float]:
    """The score of a baseline, and the test of the difference."""
    score = bleu.corpus_score(baseline, references).score
    scores = {"baseline_bleu": _percent(score)}
    if resamples:
        systems = [("baseline", baseline), ("system", hypotheses)]
        test = PairedTest(systems, {"BLEU": bleu}, references, "bs", resamples)
        _, results = test()
        of_system: Any = results["BLEU"][1]
        is_equal = of_system.score == score  # sacreBLEU may give these the smallest value
        scores["p_value"] = 1.0 if is_equal else of_system.p_value
    return scores


def _check_numbers(hypotheses, references, baseline) -> None:
    if any(isinstance(texts, str) for texts in (hypotheses, references, baseline, *references)):
        raise InputError("expected lists of translations and lists of references, got a text.")
    if not references or (not hypotheses and not any(references)):
        raise InputError("expected at least one translation and its reference, got none.")
    others = {"a reference": references, "a translation of the baseline": [baseline]}
    for name, lists in others.items():
        for texts in lists:
            if texts is not None and len(texts) != len(hypotheses):
                raise InputError(
                    f"expected {name} for each of {len(hypotheses)} translations, got {len(texts)}."
                )


def _given(hypotheses, references) -> list[Any]:
    """The lists of references with None for a missing one, as sacreBLEU takes them."""
    given = [[None if is_blank(text) else text for text in texts] for texts in references]
    for line, (hypothesis, *texts) in enumerate(zip(hypotheses, *given, strict=True)):
        if any(texts):
            continue
        if not is_blank(hypothesis):
            raise InputError(
                f"line {line + 1:,} has no reference: it is blank in every list of references. "
                "Write its translation there, or remove the line from all files."
            )
        given[0][line] = ""
    return given


def _warn(
    raw: Sequence[Sequence[str]], normalized: Sequence[Sequence[str]], options: ScoreOptions
) -> None:
    """Warns of forms of Unicode that differ, and of a tokenizer that needs spaces.

    Args:
        raw: translations and lists of references as they were given.
        normalized: the same as they are scored.
        options: how they are scored.
    """
    rows = zip(zip(*raw, strict=True), zip(*normalized, strict=True), strict=True)
    differ = sum(_shared(after) > _shared(before) for before, after in rows if before != after)
    if differ:
        print(
            f"warning: in {differ:,} of {len(raw[0]):,} lines, words of the translation and of the "
            "reference differ by their Unicode form or their spaces only. Both are normalized "
            "before they are scored; --normalize false scores them as they are.",
            file=sys.stderr,
        )
    texts = [text for text in normalized[1] if text.strip()]
    if options.tokenize == "13a" and sum(map(_lacks_spaces, texts)) * 2 > len(texts):
        print(
            "warning: most references have no spaces, which BLEU needs with the tokenizer 13a. Use "
            "zh for Chinese, ja-mecab for Japanese, char or flores200 for other languages, by "
            "--tokenize or train.bleu_tokenize.",
            file=sys.stderr,
        )


def _shared(texts: Sequence[str]) -> tuple[int, bool]:
    """How many words a translation shares with its references, and whether it equals one."""
    hypothesis, *references = texts
    words = {word for reference in references for word in reference.split()}
    return len(words & set(hypothesis.split())), hypothesis in references


def _lacks_spaces(text: str) -> bool:
    """Whether the words of the text, in a script that has no spaces between words, have none.

    Example:
        >>> list(map(_lacks_spaces, ["ein", "我喜欢", "我 喜欢 它", "ฉันชอบแมว และชอบหมา", "안녕"]))
        [False, True, False, True, False]
    """
    letters = sum(unicodedata.name(c, "").startswith(_WITHOUT_SPACES) for c in text)
    words = text.count(" ") + 1
    return letters > 0 if words == 1 else letters > _LONG_WORD * words
