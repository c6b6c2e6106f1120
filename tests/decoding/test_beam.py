"""Beam search against brute force and against a plain loop over hypotheses.

Each random case is one sentence of a batch, with a language and a limit of its own.
"""

import keras
import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, log_probability

from tf_transformer.decoding import SpecialIds, beam_search, greedy_search
from tf_transformer.decoding.hypotheses import NEVER
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH = 5
ALPHAS = [0.0, 0.6, 1.0, 2.0]


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(seed=1, languages=60, vocabulary_size=5, length=LENGTH)


@pytest.fixture(scope="module")
def limits(tables):
    return random_limits(len(tables.tables))


@pytest.fixture(scope="module")
def found(tables, limits):
    """The four best of a beam of four, on which several properties are checked."""
    return search(tables, limits, 4, num_hypotheses=4)


def random_limits(count: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, LENGTH + 1, count).astype("int32")


def search(tables, limits, beam_size, languages=None, special=SPECIAL, **options):
    """The package's beam search as arrays, on one sentence a language."""
    languages = np.arange(len(limits)) if languages is None else languages
    found = beam_search(
        tables.step,
        tables.state(languages, beam_size),
        ops.convert_to_tensor(limits),
        int(max(limits)),
        special,
        beam_size,
        **options,
    )
    return type(found)(*map(ops.convert_to_numpy, found))


def hypotheses(found, row: int):
    """(ids, log-probability, score) of the hypotheses found for a sentence."""
    fields = zip(*(field[row] for field in found), strict=True)
    return [
        (tuple(ids[:length].tolist()), log_p, score)
        for ids, length, log_p, score in fields
        if length
    ]


def assert_found(found, row: int, expected):
    got = hypotheses(found, row)
    assert [ids for ids, *_ in got] == [e.ids for e in expected]
    numbers = [(log_p, score) for _, log_p, score in got]
    expected_numbers = [(e.log_probability, e.score) for e in expected]
    np.testing.assert_allclose(numbers, expected_numbers, rtol=1e-5, atol=1e-5)


def check_against_brute_force(tables, special, alpha, num_hypotheses):
    limits = random_limits(len(tables.tables))
    widest = 64  # 2^5 sequences without and 2^5 - 1 with the end token, of 2 ordinary tokens
    found = search(
        tables, limits, widest, special=special, alpha=alpha, num_hypotheses=num_hypotheses
    )
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        every = reference_search.brute_force(
            language, tables.vocabulary_size, limit, special, alpha
        )
        assert_found(found, row, every[:num_hypotheses])


def check_against_loop(tables, special, beam_size, alpha):
    limits = random_limits(len(tables.tables))
    options = {"alpha": alpha, "num_hypotheses": beam_size, "early_stop": False}
    found = search(tables, limits, beam_size, special=special, **options)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.beam_search(language, limit, special, beam_size, alpha)
        assert_found(found, row, expected)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_beam_as_wide_as_the_space_finds_what_brute_force_finds(tables, alpha):
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=9)


def test_special_ids_may_be_any_ids():
    special = SpecialIds(pad=4, start=2, end=0)
    tables = PrefixTables.random(seed=3, languages=20, vocabulary_size=5, length=LENGTH)
    check_against_brute_force(tables, special, alpha=0.6, num_hypotheses=3)


@pytest.mark.parametrize("beam_size", [2, 5])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_narrow_beam_is_the_definition(tables, beam_size, alpha):
    check_against_loop(tables, SPECIAL, beam_size, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_size", [4, 5])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_thousands_of_random_cases(vocabulary_size, alpha):
    tables = PrefixTables.random(7, 400, vocabulary_size, LENGTH)
    for beam_size in (1, 2, 3, 4, 7):
        check_against_loop(tables, SPECIAL, beam_size, alpha)
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=5)


def test_score_is_log_probability_over_the_penalty_of_the_own_length(found):
    real = found.lengths > 0
    penalties = ((5 + found.lengths[real]) / 6.0) ** 0.6
    np.testing.assert_allclose(
        found.scores[real], found.log_probabilities[real] / penalties, rtol=1e-5
    )


def test_log_probability_is_that_of_the_returned_ids(tables, found):
    for row in range(len(found.ids)):
        for ids, log_p, _ in hypotheses(found, row):
            expected = log_probability(tables.language(row, SPECIAL), ids)
            np.testing.assert_allclose(log_p, expected, rtol=1e-5)


def test_hypotheses_are_sorted_distinct_and_complete(found, limits):
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for row, limit in enumerate(limits):
        all_ids = [ids for ids, *_ in hypotheses(found, row)]
        assert len(set(all_ids)) == len(all_ids)
        for ids in all_ids:
            assert ids[-1] == SPECIAL.end or len(ids) == limit
            assert SPECIAL.end not in ids[:-1]


def test_padding_and_start_are_never_chosen_and_padding_follows_the_end():
    tables = PrefixTables.random(4, languages=20, vocabulary_size=5, length=LENGTH)
    tables.tables[..., [SPECIAL.pad, SPECIAL.start]] += 5.0  # the likeliest tokens by far
    found = search(tables, random_limits(20), 3, num_hypotheses=3)
    after = np.arange(found.ids.shape[-1]) >= found.lengths[..., None]
    assert (found.ids[after] == SPECIAL.pad).all()
    assert (found.ids[~after] > SPECIAL.start).all()


def test_beam_of_one_is_greedy_search(tables, limits):
    one = search(tables, limits, 1)
    state = tables.state(np.arange(len(limits)), 1)
    greedy = greedy_search(
        tables.step, state, ops.convert_to_tensor(limits), int(max(limits)), SPECIAL
    )
    np.testing.assert_array_equal(one.ids, greedy.ids)
    np.testing.assert_array_equal(one.lengths, greedy.lengths)
    np.testing.assert_allclose(one.log_probabilities, greedy.log_probabilities, rtol=1e-6)
    np.testing.assert_allclose(one.scores, greedy.scores, rtol=1e-6)


@pytest.mark.parametrize(("beam_size", "alpha"), [(2, 2.0), (4, 0.6), (64, 0.0)])
def test_early_stop_changes_nothing(tables, limits, beam_size, alpha):
    options = {"alpha": alpha, "num_hypotheses": 2}
    stopped = search(tables, limits, beam_size, **options)
    exhaustive = search(tables, limits, beam_size, early_stop=False, **options)
    for one, other in zip(stopped, exhaustive, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX traces a loop once")
def test_early_stop_saves_steps():
    """The end has probability e^10 / (e^10 + 4): after the first step nothing can beat it."""
    tables = PrefixTables(np.tile(np.float32([0, 0, 10, 0, 0]), (1, 5**LENGTH, 1)), LENGTH)
    asked = []

    def step(ids, state, index):
        asked.append(int(index))
        return tables.step(ids, state, index)

    limits = ops.convert_to_tensor(np.int32([LENGTH]))
    beam_search(step, tables.state([0], 2), limits, LENGTH, SPECIAL, beam_size=2)
    assert asked == [0]


def test_rows_of_a_batch_do_not_see_each_other(tables, limits, found):
    for row in range(4):
        alone = search(tables, limits[[row]], 4, languages=[row], num_hypotheses=4)
        np.testing.assert_array_equal(alone.ids[0], found.ids[row, :, : limits[row]])
        for name in ("lengths", "log_probabilities", "scores"):
            one, other = getattr(alone, name)[0], getattr(found, name)[row]
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_asking_for_one_hypothesis_gives_the_first_of_four(tables, limits, found):
    one = search(tables, limits, 4, num_hypotheses=1)
    for many, single in zip(found, one, strict=True):
        np.testing.assert_array_equal(many[:, :1], single)


def scripted(vocabulary_size: int, probabilities: dict[tuple[int, ...], list[float]]):
    """A language of given next-token probabilities by prefix, start token included."""
    shape = (1, vocabulary_size**LENGTH, vocabulary_size)
    tables = np.zeros(shape, "float32")
    for prefix, row in probabilities.items():
        code = sum(token * vocabulary_size**n for n, token in enumerate(prefix))
        tables[0, code] = np.log(np.maximum(row, 1e-30))
    return PrefixTables(tables, LENGTH)


def test_finished_hypotheses_are_frozen():
    """By hand, α = 0: "end" has 0.6; "a end" 0.4 · 0.5 = 0.2; "a a end" 0.4 · 0.5 · 1 = 0.2.

    The first to finish stays first and unchanged while the search goes on, and the third
    finds no room in a beam of 2.
    """
    tables = scripted(
        4,
        {
            (1,): [0, 0, 0.6, 0.4],
            (1, 3): [0, 0, 0.5, 0.5],
            (1, 3, 3): [0, 0, 1.0, 0],
        },
    )
    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, early_stop=False)
    assert [ids for ids, *_ in hypotheses(found, 0)] == [(2,), (3, 2)]
    np.testing.assert_allclose(found.scores[0], np.log([0.6, 0.2]), rtol=1e-6)
    np.testing.assert_array_equal(found.ids[0], [[2, 0, 0, 0], [3, 2, 0, 0]])


def test_length_penalty_can_prefer_the_longer_hypothesis():
    """By hand: ln 0.5 / 1 = -0.69 for "end"; ln 0.45 / (7/6)^2 = -0.59 for "a end"."""
    tables = scripted(4, {(1,): [0, 0, 0.5, 0.5], (1, 3): [0, 0, 0.9, 0.1]})
    short, long = (search(tables, np.int32([3]), 2, alpha=alpha) for alpha in (0.0, 2.0))
    assert hypotheses(short, 0)[0][0] == (2,)
    assert hypotheses(long, 0)[0][0] == (3, 2)
    np.testing.assert_allclose(long.scores, [[np.log(0.45) / (7 / 6) ** 2]], rtol=1e-5)


@pytest.mark.parametrize("special", [SPECIAL, SpecialIds(pad=3, start=4, end=1)])
def test_equal_scores_are_settled_as_documented(special):
    """All tokens are equally likely, so every choice is a tie; the loop's sort is stable."""
    tables = PrefixTables(np.zeros((1, 5**LENGTH, 5), "float32"), LENGTH)
    for beam_size in (2, 3):
        check_against_loop(tables, special, beam_size, alpha=0.0)


def test_what_was_not_found_has_length_zero_and_a_finite_score():
    """A limit of 1 leaves three hypotheses: the end token and two others."""
    tables = PrefixTables.random(5, languages=1, vocabulary_size=5, length=LENGTH)
    found = search(tables, np.int32([1]), 4, num_hypotheses=4)
    np.testing.assert_array_equal(found.lengths, [[1, 1, 1, 0]])
    np.testing.assert_array_equal(found.ids[0, 3], [SPECIAL.pad])
    assert found.scores[0, 3] == np.float32(NEVER)


@pytest.mark.parametrize("extreme", [1e4, -1e4, -np.inf])
def test_extreme_logits_give_finite_numbers(extreme):
    tables = PrefixTables.random(6, languages=10, vocabulary_size=5, length=LENGTH)
    tables.tables[..., 3] = extreme
    found = search(tables, random_limits(10), 4, num_hypotheses=4)
    assert np.isfinite(found.log_probabilities).all()
    assert np.isfinite(found.scores).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"beam_size": 2, "num_hypotheses": 3},
            "expected 1 <= num_hypotheses <= beam_size, got 3 with a beam of 2.",
        ),
        (
            {"beam_size": 0, "num_hypotheses": 0},
            "expected 1 <= num_hypotheses <= beam_size, got 0 with a beam of 0.",
        ),
        (
            {"beam_size": 2, "alpha": -0.5},
            "the length penalty's exponent must not be negative, got -0.5.",
        ),
    ],
)
def test_bad_options_are_named(tables, options, message):
    with pytest.raises(InputError) as error:
        search(tables, np.int32([3]), languages=[0], **options)
    assert str(error.value) == message


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="graphs of TensorFlow")
def test_graph_with_unknown_sizes_gives_what_eager_gives(tables):
    import tensorflow as tf

    spec = tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[spec, spec])
    def graph(languages, limits):
        rows = tf.repeat(languages[:, None], 3, axis=1)
        prefix = tf.zeros((tf.size(languages), 3, LENGTH), tf.int32)
        state = {"language": rows, "prefix": prefix}
        return beam_search(tables.step, state, limits, tf.reduce_max(limits), SPECIAL, 3)

    limits = random_limits(10)
    for one, other in zip(graph(range(10), limits), search(tables, limits, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
