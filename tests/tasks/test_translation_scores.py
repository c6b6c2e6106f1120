"""Scores of given translations: sacreBLEU's, intervals, and the test of a difference."""

import itertools
import json
import unicodedata
from typing import get_args

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from tf_transformer.commands import evaluate
from tf_transformer.config.task import BleuTokenizer, TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.tasks.translation_scores import normalized
from tf_transformer.text.normalization import comparable


def score_translations(hypotheses, references, baseline=None, **options):
    """All scores of translations, TER included, and the comparison with a baseline."""
    task = TRANSLATION.with_options(TranslationOptions(**options)).with_metrics("ter")
    scores = task.score([], hypotheses, references)
    return scores | (task.compare(hypotheses, references, baseline) if baseline is not None else {})


TEXT = "the old man and a small dog walk along the river on a warm day in spring"
WORDS = TEXT.split()
REFERENCE = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(16)]
GOOD = [text.replace("dog", "cat") for text in REFERENCE]
BAD = [text.replace("small dog walk", "dog small walks") for text in REFERENCE]


def test_several_references_are_those_of_sacrebleu():
    references = [REFERENCE, GOOD]
    scores = score_translations(BAD, references)
    assert scores["bleu"] == sacrebleu.corpus_bleu(BAD, references).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(BAD, references).score
    assert scores["signature"].startswith("nrefs:2|")
    assert score_translations(GOOD, references)["exact_match"] == 100


def test_tokenised_text_is_scored_as_it_is():
    tokenised = [text.replace("river", "river's") for text in REFERENCE]
    scores = score_translations(tokenised, [REFERENCE], bleu_tokenize="none")
    assert scores["bleu"] == sacrebleu.corpus_bleu(tokenised, [REFERENCE], tokenize="none").score
    assert scores["ter"] == sacrebleu.corpus_ter(tokenised, [REFERENCE]).score
    assert "tok:none" in scores["signature"]


def test_upper_case_counts_unless_it_is_turned_off():
    upper = [text.upper() for text in REFERENCE]
    assert score_translations(upper, [REFERENCE])["bleu"] < 1
    scores = score_translations(upper, [REFERENCE], lowercase=True)
    assert scores["bleu"] == pytest.approx(100)
    assert scores["exact_match"] == 100


def test_a_better_system_is_significantly_better():
    scores = score_translations(GOOD, [REFERENCE], BAD, resamples=200)
    assert scores["baseline_bleu"] < scores["bleu"]
    assert scores["p_value"] < 0.05
    low, high = scores["bleu_interval"]
    assert low < scores["bleu"] < high
    same = score_translations(GOOD, [REFERENCE], list(GOOD), resamples=200)
    assert same["p_value"] == 1


def swapped(ours, theirs, lines):
    """The outputs of two systems after a swap of the lines where `lines` is true."""
    pairs = zip(ours, theirs, lines, strict=True)
    return zip(*[(b, a) if swap else (a, b) for a, b, swap in pairs], strict=True)


@settings(max_examples=10)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_p_value_is_the_share_of_all_swaps_with_such_a_difference(differing, seed):
    """Oracle: sacreBLEU's scores of all swapped outputs. Other lines are equal in both systems."""
    rng = np.random.default_rng(seed)
    ours = [" ".join(rng.permutation(WORDS)) for _ in range(8)]
    theirs = [" ".join(rng.permutation(WORDS)) for _ in range(differing)] + ours[differing:]
    references = [REFERENCE[:8]]

    def difference(lines):
        both = swapped(ours, theirs, lines)
        one, other = (sacrebleu.corpus_bleu(list(texts), references).score for texts in both)
        return abs(one - other)

    given_difference = difference([False] * 8)
    exact = np.mean(
        [
            difference([*lines, *[False] * (8 - differing)]) >= given_difference - 1e-9
            for lines in itertools.product([False, True], repeat=differing)
        ]
    )
    p_value = TRANSLATION.with_options(TranslationOptions(resamples=2000)).compare(
        ours, references, theirs
    )["p_value"]
    assert p_value == pytest.approx(exact, abs=0.05)  # over 4 standard deviations of 2,000 trials


@pytest.mark.parametrize("differing", [3, 60])
def test_equal_systems_differ_significantly_as_often_as_the_p_value_says(differing):
    """A p-value below 0.05 has a probability of 0.05 at most, and of about 0.05 in many lines.

    Both systems choose at random between two outputs of each line, so they are equal.
    """
    rng = np.random.default_rng(1)
    references = [" ".join(rng.permutation(WORDS)) for _ in range(60)]
    some = [text.replace("the old", "an old") for text in references]
    others = [" ".join(rng.permutation(text.split())) for text in references[:differing]]
    others += some[differing:]
    task = TRANSLATION.with_options(TranslationOptions(resamples=99))
    pairs = [swapped(some, others, rng.integers(2, size=60)) for _ in range(400)]
    values = [task.compare(ours, [references], theirs)["p_value"] for ours, theirs in pairs]
    share = np.mean(np.array(values) < 0.05)
    assert share < 0.08  # 0.05 and nearly 3 standard deviations of 400 pairs
    assert differing < 60 or share > 0.02


WORD = st.sampled_from(["a", "b", "B", "it's", "c,", "über", "我喜", "欢。", "12.5", "-", "&amp;"])
TEXT_OF_WORDS = st.lists(WORD, max_size=7).map(" ".join)
BLANK = st.sampled_from(["", " ", "\t", "\u3000", "\u200b"])


@st.composite
def corpora(draw):
    """Translations, those of a baseline, and lists of references with missing parts."""
    size, lists = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    text = st.lists(TEXT_OF_WORDS, min_size=size, max_size=size)
    rows = []
    for _ in range(size):
        given = draw(st.lists(TEXT_OF_WORDS.filter(str.strip), min_size=1, max_size=lists))
        missing = draw(st.lists(BLANK, min_size=lists - len(given), max_size=lists - len(given)))
        rows.append(draw(st.permutations(given + missing)))
    return draw(text), draw(text), [list(column) for column in zip(*rows, strict=True)]


@settings(max_examples=100)
@given(
    corpora(),
    st.sampled_from(["13a", "intl", "char", "zh", "none"]),
    st.booleans(),
    st.sampled_from([0, 40, 57]),
)
def test_scores_equal_sacrebleus_with_missing_references(corpus, tokenize, lowercase, resamples):
    """Oracle: sacreBLEU's own API, to which None is a missing reference."""
    hypotheses, baseline, references = corpus
    options = {"bleu_tokenize": tokenize, "lowercase": lowercase, "resamples": resamples}
    scores = score_translations(hypotheses, references, baseline, **options)
    expected = [[text if comparable(text) else None for text in each] for each in references]
    bleu = sacrebleu.BLEU(lowercase, tokenize == "none", tokenize)
    score = bleu.corpus_score(hypotheses, expected)
    assert scores["bleu"] == pytest.approx(score.score, abs=1e-9)
    assert scores["signature"] == str(bleu.get_signature())  # with or without an interval
    chrf = sacrebleu.CHRF(lowercase=lowercase).corpus_score(hypotheses, expected)
    assert scores["chrf"] == pytest.approx(chrf.score, abs=1e-9)
    ter = sacrebleu.TER(case_sensitive=not lowercase).corpus_score(hypotheses, expected)
    assert scores["ter"] == ter.score
    case = str.lower if lowercase else str
    rows = zip(hypotheses, *expected, strict=True)
    matches = [case(one) in [case(text) for text in row if text] for one, *row in rows]
    assert scores["exact_match"] == pytest.approx(100 * np.mean(matches))
    assert 0 <= scores["bleu"] <= 100
    assert 0 <= scores["chrf"] <= 100
    if resamples:
        score = bleu.corpus_score(hypotheses, expected, n_bootstrap=resamples)
        low, high = scores["bleu_interval"]
        # sacreBLEU computes in float32.
        assert low == pytest.approx(max(0, score._mean - score._ci), abs=1e-4)
        assert high == pytest.approx(min(100, score._mean + score._ci), abs=1e-4)
        systems = [("baseline", baseline), ("system", hypotheses)]
        _, results = PairedTest(systems, {"BLEU": bleu}, expected, "ar", resamples)()
        assert results["BLEU"][1].p_value <= scores["p_value"] <= 1  # equal without ties
    json.dumps(scores, allow_nan=False)


@settings(max_examples=100)
@given(
    st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5),
    st.sampled_from(["NFD", "NFC"]),
    st.sampled_from(["13a", "char", "none"]),
)
def test_forms_of_equal_text_score_alike(texts, form, tokenize):
    """Every figure is that of the normalised text, and normalising it twice changes nothing."""
    options = TranslationOptions(bleu_tokenize=tokenize)
    texts = [f"a{text}" for text in texts]
    other = [unicodedata.normalize(form, text) for text in texts]
    scores = score_translations(other, [texts], bleu_tokenize=tokenize)
    assert scores == score_translations(texts, [other], bleu_tokenize=tokenize)
    assert scores["exact_match"] == 100
    as_scored = [normalized(text, options) for text in texts]
    assert [normalized(text, options) for text in as_scored] == as_scored
    assert scores == score_translations(as_scored, [as_scored], bleu_tokenize=tokenize)


def test_lines_that_differ_by_form_are_counted(capsys):
    texts = ["ein Haus", "Äpfel liegen da", "zwei\u00a0Hunde"]
    other = [unicodedata.normalize("NFD", text).replace("\u00a0", " ") for text in texts]
    assert score_translations(other, [texts])["chrf"] == 100
    assert "in 2 of 3 lines, words of translation and reference" in capsys.readouterr().err
    assert score_translations(other, [texts], normalize=False)["chrf"] < 100
    assert score_translations(texts, [texts])["exact_match"] == 100
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("我喜欢猫。", True),
        ("猫が好きです", True),
        ("ฉันชอบแมวและชอบหมา มากที่สุด", True),
        ("我 喜欢 猫", False),
        ("einundzwanzig", False),
        ("고양이를 좋아해요", False),
    ],
)
def test_text_without_spaces_gives_a_warning(text, warned, capsys):
    score_translations([text, text], [[text, "one two"]])
    assert ("most references have no spaces" in capsys.readouterr().err) is False
    score_translations([text], [[text]])
    assert ("most references have no spaces" in capsys.readouterr().err) is warned
    score_translations([text], [[text]], bleu_tokenize="char")
    assert capsys.readouterr().err == ""


def test_tokenizers_are_names_of_sacrebleu():
    assert set(get_args(BleuTokenizer)) <= sacrebleu.BLEU.TOKENIZERS


def test_a_tokenizer_that_needs_more_is_an_error(monkeypatch):
    def construct(*arguments, **options):
        raise RuntimeError("Please install\n\n  sacrebleu[ja]\n")

    monkeypatch.setattr(sacrebleu, "BLEU", construct)
    message = r"tokenizer ja-mecab cannot be used: Please install sacrebleu\[ja\]$"
    with pytest.raises(InputError, match=message):
        TRANSLATION.with_options(TranslationOptions(bleu_tokenize="ja-mecab"))


@pytest.mark.parametrize("resamples", [-1, 1, 39])
def test_too_few_samples_are_an_error(resamples):
    with pytest.raises(InputError, match=f"must be 0 or at least 40, got {resamples}:"):
        TranslationOptions(resamples=resamples)


@pytest.mark.parametrize("references", [[["a", ""]], [["a", " "], ["b", "\u200b"]]])
def test_a_line_without_a_reference_is_an_error(references):
    with pytest.raises(InputError, match="line 2 has no reference"):
        score_translations(["a", "b"], references)


@pytest.mark.parametrize("lists", [1, 2])
def test_a_blank_line_on_both_sides_is_a_match(lists):
    scores = score_translations(["a b c d", " "], [["a b c d", ""]] * lists)
    assert (scores["bleu"], scores["exact_match"]) == (100.0, 100.0)


@pytest.mark.parametrize(
    ("hypotheses", "references", "baseline", "message"),
    [
        ([], [[]], None, "at least one translation"),
        (
            ["a"],
            [["a"], ["a", "b"]],
            None,
            "expected a reference for each of 1 translations, got 2",
        ),
        (["a"], [["a"]], [], "expected a translation of the baseline for each of 1"),
        (["a"], [], None, "at least one translation and its reference"),
        (["a"], ["a"], None, "lists of references, got a text"),
        ("a", [["a"]], None, "lists of references, got a text"),
    ],
)
def test_other_numbers_of_texts_are_errors(hypotheses, references, baseline, message):
    with pytest.raises(InputError, match=message):
        score_translations(hypotheses, references, baseline=baseline)


def test_files_are_scored_by_the_command(tmp_path, capsys):
    for name, lines in (("out", GOOD), ("old", BAD), ("one", REFERENCE), ("two", BAD)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    out, old, one, two = (str(tmp_path / name) for name in ("out", "old", "one", "two"))
    options = {"task_options": {"resamples": 40}, "metric": "ter"}
    evaluate.main(hypotheses=out, reference=f"{one},{two}", baseline=old, **options)
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores["baseline_bleu"] == pytest.approx(100)
    assert {"bleu_interval", "p_value", "ter", "signature", "chrf"} <= scores.keys()
    with pytest.raises(InputError, match="--baseline compares translations"):
        evaluate.main(hypotheses=out, reference=one, baseline=old, task="classification")
    options = {"task_options": {"lowercase": True}, "task": "parsing"}
    with pytest.raises(InputError, match="unknown option 'lowercase' of the task parsing"):
        evaluate.main(hypotheses=out, reference=one, **options)


def test_a_translation_without_the_marks_of_its_script_is_not_equal():
    """Khmer with U+200B between words. In English, it is noise."""
    khmer = "\u179a\u17b8\u17af\u200b\u1794\u17bb\u178e\u17d2\u1799"
    without = khmer.replace("\u200b", "")
    assert score_translations([khmer], [[khmer]])["exact_match"] == 100
    scores = score_translations([without], [[khmer]])
    assert scores["exact_match"] == 0
    assert scores["chrf"] < 100
    assert score_translations(["a house"], [["a \u200bhouse"]])["exact_match"] == 100
