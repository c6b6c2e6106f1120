"""Scores of given translations: sacreBLEU's, intervals, and the test of a difference."""

import json

import pytest
import sacrebleu

from tf_transformer.commands import evaluate
from tf_transformer.errors import InputError
from tf_transformer.tasks.translation_scores import ScoreOptions, score_translations

TEXT = "the old man and a small dog walk along the river on a warm day in spring"
WORDS = TEXT.split()
REFERENCE = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(16)]
GOOD = [text.replace("dog", "cat") for text in REFERENCE]
BAD = [text.replace("small dog walk", "dog small walks") for text in REFERENCE]


def test_several_references_are_those_of_sacrebleu():
    references = [REFERENCE, GOOD]
    found = score_translations(BAD, references)
    assert found["bleu"] == sacrebleu.corpus_bleu(BAD, references).score
    assert found["chrf"] == sacrebleu.corpus_chrf(BAD, references).score
    assert found["signature"].startswith("nrefs:2|")
    assert score_translations(GOOD, references)["exact_match"] == 100


def test_tokenised_text_is_scored_as_it_is():
    tokenised = [text.replace("river", "river's") for text in REFERENCE]
    found = score_translations(tokenised, [REFERENCE], ScoreOptions(tokenize="none", ter=True))
    assert found["bleu"] == sacrebleu.corpus_bleu(tokenised, [REFERENCE], tokenize="none").score
    assert found["ter"] == sacrebleu.corpus_ter(tokenised, [REFERENCE]).score
    assert "tok:none" in found["signature"]


def test_upper_case_counts_unless_it_is_turned_off():
    upper = [text.upper() for text in REFERENCE]
    assert score_translations(upper, [REFERENCE])["bleu"] < 1
    found = score_translations(upper, [REFERENCE], ScoreOptions(lowercase=True))
    assert found["bleu"] == pytest.approx(100)


def test_a_better_system_is_significantly_better():
    options = ScoreOptions(resamples=200)
    found = score_translations(GOOD, [REFERENCE], options, baseline=BAD)
    assert found["baseline_bleu"] < found["bleu"]
    assert found["p_value"] < 0.05
    low, high = found["bleu_interval"]
    assert low < found["bleu"] < high
    same = score_translations(GOOD, [REFERENCE], options, baseline=list(GOOD))
    assert same["p_value"] > 0.05


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
    ],
)
def test_other_numbers_of_texts_are_errors(hypotheses, references, baseline, message):
    with pytest.raises(InputError, match=message):
        score_translations(hypotheses, references, baseline=baseline)


def test_files_are_scored_by_the_command(tmp_path, capsys):
    for name, lines in (("out", GOOD), ("old", BAD), ("one", REFERENCE), ("two", BAD)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    out, old, one, two = (str(tmp_path / name) for name in ("out", "old", "one", "two"))
    evaluate.main(hypotheses=out, reference=f"{one},{two}", baseline=old, resamples=10)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["baseline_bleu"] == pytest.approx(100)
    assert {"bleu_interval", "p_value"} <= found.keys()
    with pytest.raises(InputError, match="are for translations"):
        evaluate.main(hypotheses=out, reference=one, baseline=old, task="parsing")
