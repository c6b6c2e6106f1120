"""research/corpus_faults: faults that a program puts in, and the rules that find them."""

import random

import pytest

pytest.importorskip("sacremoses")
pytest.importorskip("py3langid")

from research import corpus_faults
from tf_transformer.data.rules import RULES

PAIR = (
    "In 1998, my brother didn't buy the well-known café – it wasn't open then.",
    "Im Jahr 1998 kaufte mein Bruder das weltbekannte Café nicht – es war da nicht geöffnet.",
)
OTHER = (
    "There are many of them in the garden behind the house, and they are all green or yellow.",
    "Davon gibt es viele im Garten hinter dem Haus, und sie sind alle entweder grün oder gelb.",
)
OF_FAULT = {  # pairs that a fault needs
    corpus_faults.FOREIGN: (PAIR, ("Where?", "Où est la prochaine gare, Monsieur ?")),
    "Latin-1 read as Latin-2": (("A small garden.", "Ein kleiner jardín, mañana."), OTHER),
}
MISSED = {
    "the target has half of its words",
    "Latin-1 read as Latin-2",
}


@pytest.mark.parametrize("fault", corpus_faults.FAULTS)
def test_each_fault_changes_a_pair_and_its_rule_finds_it(fault):
    rule, put_in = corpus_faults.FAULTS[fault]
    pair, other = OF_FAULT.get(fault, (PAIR, OTHER))
    new = put_in(pair, other, random.Random(1))
    assert (new == pair) == (rule == "duplicate")
    if rule in RULES:
        test = RULES[rule].start(corpus_faults.SIDES)
        assert not test(*pair)
        assert test(*new) == (fault not in MISSED)


def test_rows_count_pairs_that_can_have_the_fault():
    pairs = [PAIR, ("A house.", "Ein Haus."), ("A green house.", "Ein grünes Haus.")]
    rows, found = corpus_faults.fault_rows("x", pairs, [OTHER] * 3)
    by_fault = {row["fault"]: row for row in rows}
    number = by_fault["a number is changed"]
    assert (number["pairs"], number["recall"], number["precision"]) == (1, 1.0, 1.0)
    decoded = by_fault["UTF-8 read as Windows-1252"]
    assert (decoded["pairs"], decoded["recall"], decoded["cleaned"]) == (2, 1.0, 1.0)
    assert by_fault["a copy of an earlier pair"]["recall"] == 1
    assert "recall" not in by_fault["the target is of another pair"]
    assert not any(map(any, (found[name] for name in RULES)))
