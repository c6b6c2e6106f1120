"""Searches for hypotheses with given phrases, against plain Python over lists of tokens."""

import numpy as np
import pytest
from keras import ops
from reference_search import (
    PrefixTables,
    all_sequences,
    arrays,
    assert_found,
    hypotheses_of,
    log_probability,
    scored,
)

from tf_transformer.decoding import (
    Constraints,
    LengthPenalty,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    StepState,
    beam_search,
)

SPECIAL = SpecialIds(pad=0, start=1, end=2)
VOCABULARY = 6  # three ordinary tokens
LANGUAGES = 24
WORD_ENDS = (3, 4)  # 5 continues a word
EVERY_SEQUENCE = 3**4 + 3**3 + 3**2 + 3 + 1


def progress(ids, phrases):
    """Which phrases a hypothesis has not met, and the longest part of one that it ends with.

    A phrase is a list of forms. A form that begins with the start id stands at the beginning only.
    """
    ids, unmet, behind = (SPECIAL.start, *ids), list(range(len(phrases))), 0
    for place, token in enumerate(ids):
        if token not in (*WORD_ENDS, SPECIAL.end):
            continue
        ended = [
            (len(phrases[n][0]), -n)
            for n in unmet
            for form in phrases[n]
            if place - len(form) >= behind and ids[place - len(form) : place] == form
        ]
        if ended:
            unmet.remove(-max(ended)[1])
            behind = place
    parts = [
        len(phrases[n][0]) - len(form) + size
        for n in unmet
        for form in phrases[n]
        for size in range(1, len(form) + 1)
        if len(ids) - size >= behind and ids[len(ids) - size :] == form[:size]
    ]
    return unmet, max([0, *parts])


def missing(ids, phrases):
    """The tokens that the phrases still need, with one behind each."""
    unmet, longest = progress(ids, phrases)
    return sum(len(phrases[n][0]) + 1 for n in unmet) - longest


def obeys(ids, phrases, limit):
    """Whether a whole hypothesis has the phrases, and always had room for them."""
    return missing(ids, phrases) == 0 and all(
        n + missing(ids[:n], phrases) <= limit for n in range(1, len(ids))
    )


def columns(phrases):
    """The row of `Problem.terms` for the phrases of a sentence."""
    return [token for forms in phrases for form in forms for token in (*form, SPECIAL.end)]


def random_phrases(seed, sizes):
    """Phrases of 24 sentences, of one to `sizes` tokens each; some have a second form."""
    random = np.random.default_rng(seed)

    def form(*start):
        first = random.choice(WORD_ENDS)
        return (*start, first, *random.integers(3, 6, random.integers(0, sizes)).tolist())

    rows = []
    for _ in range(LANGUAGES):
        rows.append([[form()] for _ in range(random.integers(0, 3))])
        for forms in rows[-1][:1]:
            if random.random() < 0.5:
                forms.append(form(SPECIAL.start))
    rows[0] = [[(3, 5)], [(3, 5)]]
    rows[1] = [[(3, 3, 4)]]
    rows[2] = [[(4,)], [(3, 4)]]
    return rows


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(31, LANGUAGES, VOCABULARY, 12)


def search(tables, limits, phrases, beam_size, **options):
    rows = list(map(columns, phrases))
    longest = max(map(len, rows))
    terms = np.int32([[*row, *[SPECIAL.pad] * (longest - len(row))] for row in rows])
    given = {"terms": ops.convert_to_tensor(terms)} if longest else {}
    problem = Problem(ops.convert_to_tensor(np.int32(limits)), **given)
    settings = SearchOptions(
        int(max(limits)),
        SPECIAL,
        beam_size,
        penalty=LengthPenalty(0.6),
        constraints=Constraints(word_ends=WORD_ENDS),
        **{"num_hypotheses": beam_size} | options,
    )
    step = Step(tables.step, tables.state(np.arange(len(limits)), beam_size))
    return arrays(beam_search(step, problem, settings))


def test_a_beam_that_holds_all_sequences_finds_those_with_the_phrases(tables):
    phrases, limits = random_phrases(32, 2), [4] * LANGUAGES
    found = search(tables, limits, phrases, EVERY_SEQUENCE, early_stopping="never")
    total = 0
    for row in range(LANGUAGES):
        language = tables.language(row, SPECIAL)
        expected = sorted(
            (
                scored(ids, log_probability(language, ids), 0.6)
                for ids in all_sequences(VOCABULARY, 4, SPECIAL)
                if obeys(ids, phrases[row], 4)
            ),
            key=lambda hypothesis: -hypothesis.score,
        )
        assert_found(found, row, expected)
        total += len(expected)
    assert total > 200


@pytest.mark.parametrize("beam_size", [1, 2, 4])
@pytest.mark.parametrize("early_stopping", [True, False, "never"])
def test_every_hypothesis_of_a_narrow_beam_has_the_phrases(tables, beam_size, early_stopping):
    phrases = random_phrases(33, 2)
    limits = [len(columns(row)) + 1 for row in phrases]  # at most 11, as the tables need
    found = search(tables, limits, phrases, beam_size, early_stopping=early_stopping)
    for row, of_row in enumerate(phrases):
        language = tables.language(row, SPECIAL)
        hypotheses = hypotheses_of(found, row)
        assert hypotheses
        for hypothesis in hypotheses:
            assert missing(hypothesis.ids, of_row) == 0
            expected = scored(hypothesis.ids, log_probability(language, hypothesis.ids), 0.6)
            np.testing.assert_allclose(hypothesis[1:], expected[1:], rtol=1e-4)


def test_a_sentence_without_phrases_is_searched_as_without_others(tables):
    phrases, limits = random_phrases(34, 2), [9] * LANGUAGES
    without = search(tables, limits, [[]] * LANGUAGES, 3, early_stopping=False)
    found = search(tables, limits, phrases, 3, early_stopping=False)
    same = [row for row, of_row in enumerate(phrases) if not of_row]
    assert len(same) > 3
    for row in same:
        assert_found(found, row, hypotheses_of(without, row))


def test_phrases_stand_where_they_cost_least():
    """A language that ends after 3 4 3; the phrase 5 5 is likeliest in its middle."""
    logits = np.full((7, VOCABULARY), -9.0, "float32")
    for place, token in enumerate([3, 4, 3, 2, 2, 2, 2]):
        logits[place, token] = 0.0
    logits[1, 5] = -2.0

    def step(ids, state, index):
        row = ops.take(ops.convert_to_tensor(logits), index, axis=0)
        after = ops.where(ops.equal(ids, 5)[..., None], np.float32([-9, -9, -9, 0, -9, -1]), row)
        return after, state

    limits = ops.convert_to_tensor(np.int32([9]))
    problem = Problem(limits, terms=ops.convert_to_tensor(np.int32([[5, 5, 2]])))
    options = SearchOptions(9, SPECIAL, 4, constraints=Constraints(word_ends=WORD_ENDS))
    found = arrays(beam_search(Step(step, StepState(())), problem, options))
    assert hypotheses_of(found, 0)[0].ids[:4] == (3, 5, 5, 3)
