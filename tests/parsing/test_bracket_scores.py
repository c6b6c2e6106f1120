"""Bracket scores: counts of each pair as EVALB (2013, COLLINS.prm) printed them."""

import pytest

from tf_transformer.errors import InputError
from tf_transformer.parsing.bracket_scores import score_trees

GOLD = "(S (NP (DT the) (NN dog)) (, ,) (VP (VBZ runs) (PRT (RP off))) (. .))"
# tree: its matched, reference and predicted brackets, and EVALB's status (1: error, 2: skipped).
PAIRS = {
    GOLD: (4, 4, 4, 0),
    "(TOP (S (NP (X the) (X dog)) (, ,) (VP (X runs) (ADVP (X off))) (. .)))": (4, 4, 4, 0),
    "(S-1 (NP-SBJ (X the) (X dog)) (, ,) (VP=3 (X runs) (PP (X off))) (. .))": (3, 4, 4, 0),
    "(S (NP (X the) (X dog) (, ,)) (VP (X runs) (X off) (. .)))": (3, 4, 3, 0),
    "(S (NP (NP (X the) (X dog))) (NP (, ,)) (VP (X runs)) (X off) (. .))": (2, 4, 4, 0),
    "(S (X the) (X dog) (X runs) (X off))": (1, 4, 1, 0),
    "(S (NP (X a) (X dog)) (, ,) (VP (X runs) (PRT (X off))) (. .))": (0, 0, 0, 1),
    "(S (NP (X the) (X dog)) (, ,) (VP (X runs)) (. .))": (0, 0, 0, 1),
    "(())": (0, 0, 0, 2),
    "": (0, 0, 0, 2),
}


def test_words_are_equal_in_any_unicode_form():
    gold, found = (f"(S (NP (NN caf{e}s)) (VP (VBP open)))" for e in ("\u00e9", "e\u0301"))
    assert score_trees([found], [gold])["f1"] == 100


@pytest.mark.parametrize(("tree", "counts"), PAIRS.items())
def test_each_pair_has_the_counts_of_evalb(tree, counts):
    matched, reference, predicted, status = counts
    found = score_trees([tree], [GOLD])
    assert (found["errors"], found["skipped"]) == (status == 1, status == 2)
    assert found["recall"] == 100 * matched / max(reference, 1)
    assert found["precision"] == 100 * matched / max(predicted, 1)
    assert found["complete_match"] == 100 * (matched == reference == predicted != 0)


def test_totals_are_those_of_evalb():
    found = score_trees(list(PAIRS), [GOLD] * len(PAIRS))
    rounded = {name: round(value, 2) for name, value in found.items()}
    assert rounded == {
        **{"f1": 77.27, "precision": 85.0, "recall": 70.83, "complete_match": 33.33},
        **{"sentences": 10, "errors": 2, "skipped": 2},
    }


def test_nothing_to_score_and_unequal_numbers_are_errors():
    for trees, references in (([], []), ([GOLD], [])):
        with pytest.raises(InputError, match="expected one tree for each reference"):
            score_trees(trees, references)
    with pytest.raises(InputError, match="tree 1: expected a tree in brackets"):
        score_trees(["(S"], [GOLD])
