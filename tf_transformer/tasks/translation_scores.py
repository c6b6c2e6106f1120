"""Metrics of translations: sacreBLEU's BLEU, chrF and TER, and exact matches.

Approximate randomization tests the difference between two systems (Riezler and Maxwell 2005).
"""

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_transformer.config.task import FEWEST_RESAMPLES, TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.tasks.metrics import References, Scores, Strings
from tf_transformer.text.normalization import comparable_in_script, is_blank

if TYPE_CHECKING:
    import sacrebleu  # methods import it, because a translation needs no scores

# First words in the names of characters, for scripts without spaces between words.
_WITHOUT_SPACES = "CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"
_LONG_WORD = 6  # letters; a word of these scripts rarely has so many
_SEED = 12345  # of sacreBLEU's trials


@dataclass(frozen=True)
class Bleu:
    """BLEU, 0 to 100. By default, text is cased and detokenised.

    Example:
        >>> Bleu(TranslationOptions()).score([], ["a b c d"], [["a b c d"], ["e"]])["bleu"]
        100.0
    """

    options: TranslationOptions

    name = "bleu"
    lower_is_better = False

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        """Scores translations against one or several references.

        A blank reference is a missing reference. If a translation and all its references are
        blank, they are equal. The inputs are not used.

        Returns:
            bleu: the score of sacreBLEU. signature: sacreBLEU's signature. bleu_interval, with
            resamples: the 95% confidence interval (bootstrap).

        Raises:
            InputError: for no translations, unequal numbers of texts, a translation without a
                reference, or a tokenizer that cannot be used.
        """
        texts = Texts.of(predictions, references, self.options)
        _warn(predictions, references, texts, self.options)
        bleu = self.scorer()
        score = bleu.corpus_score(texts.hypotheses, texts.references).score
        scores = {"bleu": _percent(score), "signature": str(bleu.get_signature())}
        if self.options.resamples:
            scores["bleu_interval"] = self._interval(bleu, texts)
        return scores

    def _interval(self, bleu: "sacrebleu.BLEU", texts: "Texts") -> list[float]:
        """The 95% confidence interval of BLEU, by the samples of sacreBLEU's bootstrap.

        sacreBLEU holds the statistics of all samples at a time: 80 MB for 1,000 samples of 1,000
        sentences. Here, one sample is made after another.
        """
        statistics = bleu._extract_corpus_statistics(texts.hypotheses, texts.references)
        table, generator = np.array(statistics), np.random.default_rng(_SEED)
        sums = (
            table[generator.choice(len(table), len(table))].sum(axis=0).tolist()
            for _ in range(self.options.resamples)
        )
        scores = np.sort([bleu._compute_score_from_stats(sample).score for sample in sums])
        outside = len(scores) // FEWEST_RESAMPLES
        half = (scores[-1 - outside] - scores[outside]) / 2
        return [_percent(scores.mean() - half), _percent(scores.mean() + half)]

    def compare(self, predictions: Strings, references: References, baseline: Strings) -> Scores:
        """Scores the translations of another system, `baseline`, and tests the difference.

        Returns:
            baseline_bleu: the BLEU of the other system. p_value, with resamples: the probability of
            such a difference in BLEU, or a larger one, between equal systems (two-sided).
        """
        texts = Texts.of(predictions, references, self.options)
        _require_as_many("a translation of the baseline", baseline, predictions)
        baseline = [normalized(text, self.options) for text in baseline]
        bleu = self.scorer()
        score = bleu.corpus_score(baseline, texts.references).score
        scores = {"baseline_bleu": _percent(score)}
        if self.options.resamples:
            scores["p_value"] = self._p_value(bleu, texts, baseline)
        return scores

    def _p_value(self, bleu: "sacrebleu.BLEU", texts: "Texts", baseline: list[str]) -> float:
        """The p-value of a difference in BLEU, by paired approximate randomization.

        A trial swaps the outputs of both systems in random lines. If the systems are equal, the
        given outputs are such a trial, too. The p-value is the share of all trials whose difference
        is at least as large as the given one. sacreBLEU makes the same trials, and counts only
        larger differences. That is too few if outputs differ in few lines: with one such line, the
        difference is the same in all trials.
        """
        ours, theirs = (
            np.array(bleu._extract_corpus_statistics(outputs, texts.references))
            for outputs in (texts.hypotheses, baseline)
        )

        def difference(moved: Any) -> float:
            both = ours.sum(axis=0) + moved, theirs.sum(axis=0) - moved
            one, other = (bleu._compute_score_from_stats(stats.tolist()).score for stats in both)
            return abs(one - other)

        size = self.options.resamples, len(baseline)
        trials = np.random.default_rng(_SEED).integers(2, size=size, dtype=bool)
        given = difference(0)
        as_large = sum(difference(swapped @ (theirs - ours)) >= given for swapped in trials)
        return (as_large + 1) / (len(trials) + 1)

    def scorer(self) -> "sacrebleu.BLEU":
        """The scorer of sacreBLEU; an `InputError` if its tokenizer lacks a package or download."""
        import sacrebleu

        tokenize, lowercase = self.options.bleu_tokenize, self.options.lowercase
        try:
            return sacrebleu.BLEU(lowercase, force=tokenize == "none", tokenize=tokenize)
        except (ImportError, RuntimeError, OSError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"sacreBLEU's tokenizer {tokenize} cannot be used: {reason}"
            ) from error


@dataclass(frozen=True)
class _OfTexts:
    """A metric of normalized texts without inputs; see `Bleu`."""

    options: TranslationOptions

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        return self._score(Texts.of(predictions, references, self.options))

    def _score(self, texts: "Texts") -> dict[str, Any]:
        raise NotImplementedError


class ChrF(_OfTexts):
    """The F-score of characters, 0 to 100."""

    name = "chrf"
    lower_is_better = False

    def _score(self, texts: "Texts") -> dict[str, Any]:
        import sacrebleu

        chrf = sacrebleu.CHRF(lowercase=self.options.lowercase)
        return {"chrf": _percent(chrf.corpus_score(texts.hypotheses, texts.references).score)}


class Ter(_OfTexts):
    """The translation edit rate: edits per 100 words of the reference."""

    name = "ter"
    lower_is_better = True

    def _score(self, texts: "Texts") -> dict[str, Any]:
        import sacrebleu

        ter = sacrebleu.TER(case_sensitive=not self.options.lowercase)
        return {"ter": ter.corpus_score(texts.hypotheses, texts.references).score}


class ExactMatch(_OfTexts):
    """The percentage of translations equal to one of their references."""

    name = "exact_match"
    lower_is_better = False

    def _score(self, texts: "Texts") -> dict[str, Any]:
        rows: Any = zip(texts.hypotheses, *texts.references, strict=True)
        if self.options.lowercase:
            rows = ([text if text is None else text.lower() for text in row] for row in rows)
        matches = sum(text in others for text, *others in rows)
        count = len(texts.hypotheses)
        return {"exact_match": 100.0 * matches / count, "sentences": count}


@dataclass(frozen=True)
class Texts:
    """Texts in the form that is scored."""

    hypotheses: list[str]
    references: list[Any]  # lists for sacreBLEU, with None for a missing reference

    @classmethod
    def of(
        cls, hypotheses: Sequence[str], references: References, options: TranslationOptions
    ) -> "Texts":
        """Normalizes texts, and raises the errors of `Bleu.score`."""
        if any(isinstance(texts, str) for texts in (hypotheses, references, *references)):
            raise InputError("expected lists of translations and lists of references, got a text.")
        if not references or (not hypotheses and not any(references)):
            raise InputError("expected at least one translation and its reference, got none.")
        for texts in references:
            _require_as_many("a reference", texts, hypotheses)
        lists = [[normalized(text, options) for text in texts] for texts in references]
        outputs = [normalized(text, options) for text in hypotheses]
        return cls(outputs, _given(outputs, lists))


def normalized(text: str, options: TranslationOptions) -> str:
    """The text in the form that is scored."""
    if not options.normalize:
        return text
    tokenised = options.bleu_tokenize == "none"
    return unicodedata.normalize("NFC", text) if tokenised else comparable_in_script(text)


def _percent(score: float) -> float:
    """The score, limited to 0 and 100; rounding and symmetric intervals may exceed these limits."""
    return float(min(max(score, 0.0), 100.0))


def _require_as_many(name: str, texts: Sequence[str], hypotheses: Sequence[str]) -> None:
    if len(texts) != len(hypotheses):
        raise InputError(
            f"expected {name} for each of {len(hypotheses)} translations, got {len(texts)}."
        )


def _given(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[Any]:
    """The lists of references for sacreBLEU, with None for a missing reference."""
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
    hypotheses: Sequence[str], references: References, texts: Texts, options: TranslationOptions
) -> None:
    """Warns of given texts with different Unicode forms, and of a tokenizer that needs spaces."""
    scored = texts.hypotheses, *([text or "" for text in column] for column in texts.references)
    raw = zip(hypotheses, *references, strict=True)
    rows = zip(raw, zip(*scored, strict=True), strict=True)
    differ = sum(_shared(after) > _shared(before) for before, after in rows if before != after)
    if differ and options.normalize:
        print(
            f"warning: in {differ:,} of {len(hypotheses):,} lines, words of translation and "
            "reference differ only by their Unicode form or their spaces. Both are normalized "
            "before they are scored; --task.normalize false scores the given texts.",
            file=sys.stderr,
        )
    given = [text for text in scored[1] if text.strip()]
    if options.bleu_tokenize == "13a" and sum(map(_lacks_spaces, given)) * 2 > len(given):
        print(
            "warning: most references have no spaces, which BLEU needs with the tokenizer 13a. "
            "Give --task.bleu_tokenize: zh for Chinese, ja-mecab for Japanese, char or flores200 "
            "for other languages.",
            file=sys.stderr,
        )


def _shared(texts: Sequence[str]) -> tuple[int, bool]:
    """The number of words that a translation shares with its references; whether it equals one."""
    hypothesis, *references = texts
    words = {word for reference in references for word in reference.split()}
    return len(words & set(hypothesis.split())), hypothesis in references


def _lacks_spaces(text: str) -> bool:
    """Whether a text has no spaces between words, in a script without such spaces.

    Example:
        >>> list(map(_lacks_spaces, ["ein", "我喜欢", "我 喜欢 它", "ฉันชอบแมว และชอบหมา", "안녕"]))
        [False, True, False, True, False]
    """
    letters = sum(unicodedata.name(c, "").startswith(_WITHOUT_SPACES) for c in text)
    words = text.count(" ") + 1
    return letters > 0 if words == 1 else letters > _LONG_WORD * words
