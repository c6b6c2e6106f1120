"""Greedy search against a plain loop, and the pieces all searches share."""

import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables

from tf_transformer.decoding import SpecialIds, greedy_search, length_penalty
from tf_transformer.decoding.hypotheses import NEVER, next_log_probabilities, set_column

SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH = 5
LANGUAGES = 80


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(seed=11, languages=LANGUAGES, vocabulary_size=5, length=LENGTH)


@pytest.fixture(scope="module")
def limits():
    return np.random.default_rng(12).integers(1, LENGTH + 1, LANGUAGES).astype("int32")


def search(tables, limits, languages=None, **options):
    languages = np.arange(len(limits)) if languages is None else languages
    state = tables.state(languages, beam_size=1)
    limits = ops.convert_to_tensor(limits)
    found = greedy_search(tables.step, state, limits, int(max(limits)), SPECIAL, **options)
    return type(found)(*map(ops.convert_to_numpy, found))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_greedy_takes_the_likeliest_token_until_end_or_limit(tables, limits, alpha):
    found = search(tables, limits, alpha=alpha)
    assert found.ids.shape == (LANGUAGES, 1, LENGTH)
    for row, limit in enumerate(limits):
        language = tables.language(row, SPECIAL)
        expected = reference_search.greedy(language, limit, SPECIAL, alpha)
        length = found.lengths[row, 0]
        assert tuple(found.ids[row, 0, :length]) == expected.ids
        assert (found.ids[row, 0, length:] == SPECIAL.pad).all()
        np.testing.assert_allclose(
            [found.log_probabilities[row, 0], found.scores[row, 0]],
            [expected.log_probability, expected.score],
            rtol=1e-5,
        )


def test_rows_of_a_batch_do_not_see_each_other(tables, limits):
    together = search(tables, limits)
    for row in range(5):
        alone = search(tables, limits[[row]], languages=[row])
        np.testing.assert_array_equal(alone.ids[0, 0], together.ids[row, 0, : limits[row]])
        np.testing.assert_allclose(alone.scores[0], together.scores[row], rtol=1e-6)


def test_of_equally_likely_tokens_the_lowest_id_wins():
    tables = PrefixTables(np.zeros((1, 5**LENGTH, 5), "float32"), LENGTH)
    found = search(tables, np.int32([3]))
    np.testing.assert_array_equal(found.ids, [[[2, 0, 0]]])  # 2 is the end token


def test_length_penalty_by_hand():
    """((5 + length) / 6)^α: 1 at length 1 for every α; (12 / 6)^α at 7; (18 / 6)^α at 13."""
    lengths = np.int32([1, 7, 13])
    for alpha, expected in [(0.0, [1, 1, 1]), (1.0, [1, 2, 3]), (2.0, [1, 4, 9])]:
        penalty = ops.convert_to_numpy(length_penalty(lengths, alpha))
        np.testing.assert_allclose(penalty, expected, rtol=1e-6)


def test_excluded_tokens_take_no_probability_from_the_others():
    """Four equal logits: ln 1/4 each, also with two of the four excluded."""
    log_p = ops.convert_to_numpy(next_log_probabilities(ops.zeros((1, 1, 4)), SPECIAL))
    np.testing.assert_allclose(log_p, [[[NEVER, NEVER, np.log(0.25), np.log(0.25)]]], rtol=1e-6)


def test_set_column_changes_one_column():
    ids = ops.zeros((2, 3), "int32")
    changed = set_column(ids, 1, ops.convert_to_tensor(np.int32([7, 8])))
    np.testing.assert_array_equal(ops.convert_to_numpy(changed), [[0, 7, 0], [0, 8, 0]])
