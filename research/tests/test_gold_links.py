"""The alignment error rate, by hand and on the alignments of a trained run."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research import gold_links
from research.gold_links import GoldLinks, agreement, generate_links
from tf_transformer.data.readers.generated import date_in_words, generate
from tf_transformer.inference.translator import Translator

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


@pytest.mark.parametrize(
    ("found", "sure", "possible", "expected"),
    [
        ([(0, 0)], [(0, 0)], [(0, 0)], (0, 1, 1)),
        ([(0, 0), (1, 1)], [(0, 0)], [(0, 0), (1, 1)], (0, 1, 1)),  # a possible link is no error
        ([(0, 0), (1, 2)], [(0, 0)], [(0, 0), (1, 1)], (1 / 3, 1 / 2, 1)),
        ([(0, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1)], (1, 0, 0)),
        ([], [(0, 0)], [(0, 0)], (1, 1, 0)),
        ([], [], [], (0, 1, 1)),
    ],
)
def test_error_rates_by_hand(found, sure, possible, expected):
    assert agreement([found], [GoldLinks(sure, possible)]) == pytest.approx(expected)


def test_the_error_rate_of_a_corpus_counts_links_not_sentences():
    diagonal = [(0, 0), (1, 1), (2, 2)]
    found = [[(0, 1)], diagonal]
    gold = [GoldLinks([(0, 0)], [(0, 0)]), GoldLinks(diagonal, diagonal)]
    assert agreement(found, gold).error_rate == pytest.approx(1 - 6 / 8)


@given(LINKS, LINKS, LINKS)
def test_without_possible_links_it_is_one_minus_the_harmonic_mean(found, sure, more):
    """Of precision and recall; possible links never make it worse."""
    rate, precision, recall = agreement([found], [GoldLinks(sure, sure)])
    if found & sure:
        assert rate == pytest.approx(1 - 2 * precision * recall / (precision + recall))
    assert 0 <= agreement([found], [GoldLinks(sure, sure | more)]).error_rate <= rate


def test_alignments_of_a_run_are_compared_with_the_generated_gold_alignments(run):
    """Every link of a number is right, because German numbers are one word."""
    pairs, gold = generate(20, "en", "de", seed=3), generate_links(20, "en", "de", seed=3)
    aligned = Translator.from_run(run).align(pairs["source"], pairs["target"])
    links = [alignment.links() for alignment in aligned]
    found = agreement(links, gold)
    assert 0 < found.error_rate < 1
    numbers = [i for i, target in enumerate(pairs["target"]) if " " not in target]
    assert len(numbers) == 16
    of_numbers = agreement([links[i] for i in numbers], [gold[i] for i in numbers])
    assert of_numbers.precision == 1
    assert of_numbers.recall > 1 / 9


def test_links_of_dates_by_hand(monkeypatch):
    """March 21, 1984: einundzwanzigste März 1984; vingt et un mars 1984; 21 de marzo de 1984."""
    meanings = [datetime.date(1984, 3, 21)]
    monkeypatch.setattr(gold_links, "meanings", lambda count, seed: meanings)
    english, german, french, spanish = "en", "de", "fr", "es"
    links = generate_links(1, english, german, seed=0)[0]
    assert links.sure == links.possible == [(0, 1), (1, 0), (2, 2), (3, 2)]
    links = generate_links(1, english, french, seed=0)[0]
    assert links.sure == [(0, 3), (1, 0), (1, 1), (1, 2)]
    years = [(s, t) for s in (2, 3) for t in (4, 5, 6, 7)]
    assert links.possible == links.sure + years
    words = date_in_words(meanings[0], spanish).split()
    for source in (english, spanish):
        linked = {words[t] for _, t in generate_links(1, source, spanish, seed=0)[0].possible}
        assert set(words) - linked == {"de"}


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("de", "fr")])
def test_links_are_those_of_the_generated_pairs(languages):
    """No position is outside of its sentence, and every word of a number is linked."""
    corpus, gold = generate(50, *languages, seed=1), generate_links(50, *languages, seed=1)
    for source, target, links in zip(corpus["source"], corpus["target"], gold, strict=True):
        assert set(links.sure) <= set(links.possible)
        for side, text in enumerate((source, target)):
            assert {link[side] for link in links.possible} == set(range(len(text.split())))
