"""Beam search against brute force and against a plain loop over hypotheses.

Each random case is one sentence of a batch, with a language and a limit of its own.
"""

import keras
import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, arrays, assert_found, hypotheses_of, log_probability

from tf_transformer.decoding import SpecialIds, beam_search, greedy_search
from tf_transformer.decoding.hypotheses import NEG_INF
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH = 5
ALPHAS = [0.0, 0.6, 1.0, 2.0]
# 2^5 sequences without and 2^5 - 1 with the end token, of 2 ordinary tokens.
WHOLE_SPACE = 64
# 300 cases for each length penalty, most where there is most to get wrong.
LANGUAGES = {3: 20, 4: 80, 5: 200}  # by size of the vocabulary

each_alpha = pytest.mark.parametrize("alpha", ALPHAS)
each_vocabulary = pytest.mark.parametrize("tables", LANGUAGES, ids="V={}".format, indirect=True)


@pytest.fixture(scope="module")
def tables(request):
    size = getattr(request, "param", 5)
    return PrefixTables.random(seed=size, languages=LANGUAGES[size], vocabulary_size=size, length=5)


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
    return arrays(
        beam_search(
            tables.step,
            tables.state(languages, beam_size),
            ops.convert_to_tensor(limits),
            int(max(limits)),
            special,
            beam_size,
            **options,
        )
    )


def check_against_brute_force(tables, special, alpha, num_hypotheses):
    limits = random_limits(len(tables.tables))
    options = {"alpha": alpha, "num_hypotheses": num_hypotheses}
    found = search(tables, limits, WHOLE_SPACE, special=special, **options)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        every = reference_search.brute_force(
            language, tables.vocabulary_size, limit, special, alpha
        )
        assert_found(found, row, every[:num_hypotheses])


def check_against_loop(tables, special, beam_size, alpha, with_bonus=False, early_stop=False):
    limits = random_limits(len(tables.tables))
    options = {"alpha": alpha, "num_hypotheses": beam_size, "early_stop": early_stop}
    bonus = tables.bonus if with_bonus else None
    found = search(tables, limits, beam_size, special=special, bonus=bonus, **options)
    bonus_of = tables.bonus_of(special) if with_bonus else None
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.beam_search(
            language, limit, special, beam_size, alpha, bonus=bonus_of
        )
        assert_found(found, row, expected)


@each_vocabulary
@each_alpha
def test_beam_as_wide_as_the_space_finds_what_brute_force_finds(tables, alpha):
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=9)


@pytest.mark.parametrize("special", [SpecialIds(pad=4, start=2, end=0), SpecialIds(1, 3, 4)])
def test_special_ids_may_be_any_ids(special):
    tables = PrefixTables.random(seed=3, languages=20, vocabulary_size=5, length=LENGTH)
    check_against_brute_force(tables, special, alpha=0.6, num_hypotheses=3)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@each_vocabulary
@each_alpha
def test_narrow_beam_is_the_definition(tables, beam_size, alpha):
    check_against_loop(tables, SPECIAL, beam_size, alpha)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_narrow_beam_is_the_definition_in_a_larger_vocabulary(beam_size):
    """In which not every token is ranked, and the end is often among the best."""
    tables = PrefixTables.random(10, languages=100, vocabulary_size=30, length=LENGTH)
    tables.tables[..., SPECIAL.end] += 4.0
    check_against_loop(tables, SPECIAL, beam_size, alpha=1.0)


@pytest.mark.parametrize("beam_size", [2, 3])
@each_alpha
def test_bonus_counts_for_what_ends_and_for_nothing_else(tables, beam_size, alpha):
    check_against_loop(tables, SPECIAL, beam_size, alpha, with_bonus=True)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_size", [4, 5])
@each_alpha
def test_thousands_of_random_cases(vocabulary_size, alpha):
    tables = PrefixTables.random(7, 1000, vocabulary_size, LENGTH)
    for beam_size in (1, 2, 3, 4, 7):
        for with_bonus in (False, True):
            check_against_loop(tables, SPECIAL, beam_size, alpha, with_bonus)
    # Asked for all hypotheses of the beam, the early stop waits until all are final.
    check_against_loop(tables, SPECIAL, 3, alpha, with_bonus=True, early_stop=True)
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=5)


def test_score_is_log_probability_over_the_penalty_of_the_own_length(found):
    real = found.lengths > 0
    penalties = ((5 + found.lengths[real]) / 6.0) ** 0.6
    np.testing.assert_allclose(
        found.scores[real], found.log_probabilities[real] / penalties, rtol=1e-5
    )


def test_log_probability_is_that_of_the_returned_ids(tables, found):
    for row in range(len(found.ids)):
        for hypothesis in hypotheses_of(found, row):
            expected = log_probability(tables.language(row, SPECIAL), hypothesis.ids)
            np.testing.assert_allclose(hypothesis.log_probability, expected, rtol=1e-5)


def test_hypotheses_are_sorted_distinct_and_complete(found, limits):
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for row, limit in enumerate(limits):
        all_ids = [hypothesis.ids for hypothesis in hypotheses_of(found, row)]
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


@each_vocabulary
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


@pytest.mark.parametrize("with_bonus", [False, True], ids=["", "bonus"])
@pytest.mark.parametrize(
    ("beam_size", "alpha", "num_hypotheses"), [(2, 2.0, 2), (4, 0.6, 1), (64, 0.0, 2), (7, 1.0, 3)]
)
def test_early_stop_changes_nothing(tables, limits, beam_size, alpha, num_hypotheses, with_bonus):
    options = {"alpha": alpha, "num_hypotheses": num_hypotheses}
    options["bonus"] = tables.bonus if with_bonus else None
    stopped = search(tables, limits, beam_size, **options)
    exhaustive = search(tables, limits, beam_size, early_stop=False, **options)
    for one, other in zip(stopped, exhaustive, strict=True):
        np.testing.assert_array_equal(one, other)


def steps_taken(tables, limit, **options) -> int:
    asked = []

    def step(ids, state, index):
        asked.append(int(index))
        return tables.step(ids, state, index)

    limits = ops.convert_to_tensor(np.int32([limit]))
    beam_search(step, tables.state([0], 2), limits, limit, SPECIAL, beam_size=2, **options)
    return len(asked)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX traces a loop once")
def test_early_stop_saves_steps():
    """The end has probability e^10 / (e^10 + 4): after the first step nothing can beat it."""
    tables = PrefixTables(np.tile(np.float32([0, 0, 10, 0, 0]), (1, 5**LENGTH, 1)), LENGTH)
    assert steps_taken(tables, LENGTH) == 1
    # Two hypotheses are asked for: the second ends with the second step.
    assert steps_taken(tables, LENGTH, num_hypotheses=2) == 2


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX traces a loop once")
def test_search_ends_when_the_beam_is_full():
    """One hypothesis ends with each step, so a beam of two is full after the second."""
    tables = PrefixTables(np.tile(np.float32([0, 0, 10, 0, 0]), (1, 5**LENGTH, 1)), LENGTH)
    assert steps_taken(tables, LENGTH, early_stop=False) == 2


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
    assert [hypothesis.ids for hypothesis in hypotheses_of(found, 0)] == [(2,), (3, 2)]
    np.testing.assert_allclose(found.scores[0], np.log([0.6, 0.2]), rtol=1e-6)
    np.testing.assert_array_equal(found.ids[0], [[2, 0, 0, 0], [3, 2, 0, 0]])


def test_length_penalty_can_prefer_the_longer_hypothesis():
    """By hand: ln 0.5 / 1 = -0.69 for "end"; ln 0.45 / (7/6)^2 = -0.59 for "a end"."""
    tables = scripted(4, {(1,): [0, 0, 0.5, 0.5], (1, 3): [0, 0, 0.9, 0.1]})
    short, long = (search(tables, np.int32([3]), 2, alpha=alpha) for alpha in (0.0, 2.0))
    assert hypotheses_of(short, 0)[0].ids == (2,)
    assert hypotheses_of(long, 0)[0].ids == (3, 2)
    np.testing.assert_allclose(long.scores, [[np.log(0.45) / (7 / 6) ** 2]], rtol=1e-5)


def test_bonus_can_prefer_the_hypothesis_that_is_less_likely():
    """By hand: ln 0.9 - 5 for "end", whose state holds the start token alone; ln 0.1 for "a"."""
    tables = scripted(4, {(1,): [0, 0, 0.9, 0.1], (1, 3): [0, 0, 1.0, 0]})

    def bonus(state):
        return ops.where(ops.equal(state.own[:, :, 1], 3), 0.0, -5.0)

    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, bonus=bonus)
    assert [hypothesis.ids for hypothesis in hypotheses_of(found, 0)] == [(3, 2), (2,)]
    np.testing.assert_allclose(found.scores[0], [np.log(0.1), np.log(0.9) - 5], rtol=1e-5)
    np.testing.assert_allclose(found.log_probabilities[0], np.log([0.1, 0.9]), rtol=1e-5)


@pytest.mark.parametrize("special", [SPECIAL, SpecialIds(pad=3, start=4, end=1)])
def test_equal_scores_are_settled_as_documented(special):
    """All tokens are equally likely, so every choice is a tie; the loop's sort is stable."""
    tables = PrefixTables(np.zeros((1, 5**LENGTH, 5), "float32"), LENGTH)
    for beam_size in (2, 3):
        check_against_loop(tables, special, beam_size, alpha=0.0)


def test_of_equal_scores_the_hypothesis_finished_earlier_comes_first():
    """By hand, α = 0: ln 1/4 for "end" and, the end being certain there, for "a end"."""
    tables = PrefixTables(np.zeros((1, 4**LENGTH, 4), "float32"), LENGTH)
    tables.tables[0, 1 + 3 * 4, SPECIAL.end] = 1e4
    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, early_stop=False)
    assert [hypothesis.ids for hypothesis in hypotheses_of(found, 0)] == [(2,), (3, 2)]
    assert found.scores[0, 0] == found.scores[0, 1]


def test_what_was_not_found_has_length_zero_and_a_finite_score():
    """A limit of 1 leaves three hypotheses: the end token and two others."""
    tables = PrefixTables.random(5, languages=1, vocabulary_size=5, length=LENGTH)
    found = search(tables, np.int32([1]), 4, num_hypotheses=4)
    np.testing.assert_array_equal(found.lengths, [[1, 1, 1, 0]])
    np.testing.assert_array_equal(found.ids[0, 3], [SPECIAL.pad])
    assert found.scores[0, 3] == np.float32(NEG_INF)


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
        state = tables.state(languages, 3)
        return beam_search(tables.step, state, limits, tf.reduce_max(limits), SPECIAL, 3)

    limits = random_limits(10)
    for one, other in zip(graph(range(10), limits), search(tables, limits, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
