"""Beam search against brute force and against a loop over hypotheses.

Each random case is one sentence of a batch; each has its own language and limit.
"""

import keras
import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, arrays, assert_found, hypotheses_of, log_probability

from tf_transformer.decoding import (
    NEG_INF,
    LengthPenalty,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    beam_search,
    greedy_search,
)
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH = 5
ALPHAS = [0.0, 0.6, 1.0, 2.0]
# With 2 ordinary tokens, 2^5 sequences have no end token and 2^5 - 1 have one.
ALL_SEQUENCES = 64
LANGUAGES = {3: 20, 4: 80, 5: 200}  # number of cases by vocabulary size

each_alpha = pytest.mark.parametrize("alpha", ALPHAS)
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="uses TensorFlow or counts eager steps"
)
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
    """All four hypotheses of a beam of four."""
    return search(tables, limits, 4, num_hypotheses=4)


def random_limits(count: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, LENGTH + 1, count).astype("int32")


def search(
    tables, limits, beam_size, languages=None, special=SPECIAL, alpha=0.6, bonus=None, **options
):
    """The package's beam search on one sentence per language, as arrays."""
    languages = np.arange(len(limits)) if languages is None else languages
    step = Step(tables.step, tables.state(languages, beam_size), bonus=bonus)
    problem = Problem(ops.convert_to_tensor(limits))
    penalty = LengthPenalty(alpha)
    settings = SearchOptions(int(max(limits)), special, beam_size, penalty=penalty, **options)
    return arrays(beam_search(step, problem, settings))


def check_against_brute_force(tables, special, alpha, num_hypotheses):
    limits = random_limits(len(tables.tables))
    options = {"alpha": alpha, "num_hypotheses": num_hypotheses}
    found = search(tables, limits, ALL_SEQUENCES, special=special, **options)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.brute_force(
            language, tables.vocabulary_size, limit, special, alpha
        )
        assert_found(found, row, expected[:num_hypotheses])


def check_against_loop(
    tables, special, beam_size, alpha, with_bonus=False, bounded=False, early_stopping=True
):
    limits = random_limits(len(tables.tables))
    options = {"alpha": alpha, "num_hypotheses": beam_size, "early_stopping": early_stopping}
    options |= {"bonus": tables.bonus if with_bonus else None, "bounded": bounded}
    found = search(tables, limits, beam_size, special=special, **options)
    bonus_of = tables.bonus_of(special) if with_bonus else None
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.beam_search(
            *(language, limit, special, beam_size, alpha),
            bonus=bonus_of,
            early_stopping=early_stopping,
        )
        assert_found(found, row, expected)


@each_vocabulary
@each_alpha
def test_beam_that_holds_all_sequences_equals_brute_force(tables, alpha):
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=9)


@pytest.mark.parametrize("special", [SpecialIds(pad=4, start=2, end=0), SpecialIds(1, 3, 4)])
def test_special_ids_may_be_any_ids(special):
    tables = PrefixTables.random(seed=3, languages=20, vocabulary_size=5, length=LENGTH)
    check_against_brute_force(tables, special, alpha=0.6, num_hypotheses=3)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
@each_vocabulary
@each_alpha
def test_narrow_beam_equals_its_definition(tables, beam_size, alpha):
    check_against_loop(tables, SPECIAL, beam_size, alpha)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_narrow_beam_equals_its_definition_in_a_larger_vocabulary(beam_size):
    """Only some of 30 tokens are ranked, and the end token is often among the best."""
    tables = PrefixTables.random(10, languages=100, vocabulary_size=30, length=LENGTH)
    tables.tables[..., SPECIAL.end] += 4.0
    check_against_loop(tables, SPECIAL, beam_size, alpha=1.0)


@pytest.mark.parametrize("beam_size", [2, 3])
@each_alpha
def test_bonus_is_added_only_to_hypotheses_that_end(tables, beam_size, alpha):
    check_against_loop(tables, SPECIAL, beam_size, alpha, with_bonus=True)


@pytest.mark.parametrize("early_stopping", [False, "never"])
@each_alpha
def test_each_rule_of_early_stopping_equals_its_definition(tables, early_stopping, alpha):
    for beam_size, with_bonus in ((2, False), (3, True)):
        check_against_loop(
            tables, SPECIAL, beam_size, alpha, with_bonus, early_stopping=early_stopping
        )


def test_a_longer_search_finds_better_scores(tables, limits):
    first, longer, longest = (
        search(tables, limits, 2, alpha=2.0, early_stopping=rule).scores[:, 0]
        for rule in (True, False, "never")
    )
    for less, more in ((first, longer), (longer, longest)):
        assert (less <= more).all()
        assert (less < more).any()


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary_size", [4, 5])
@each_alpha
def test_thousands_of_random_cases(vocabulary_size, alpha):
    tables = PrefixTables.random(7, 1000, vocabulary_size, LENGTH)
    for beam_size in (1, 2, 3, 4, 7):
        for with_bonus in (False, True):
            for rule in (True, False, "never"):
                check_against_loop(
                    tables, SPECIAL, beam_size, alpha, with_bonus, early_stopping=rule
                )
    # When all hypotheses of the beam are returned, the bound changes none of them.
    check_against_loop(tables, SPECIAL, 3, alpha, with_bonus=True, bounded=True)
    check_against_brute_force(tables, SPECIAL, alpha, num_hypotheses=5)


def test_score_is_log_probability_over_length_penalty(found):
    real = found.lengths > 0
    penalties = ((5 + found.lengths[real]) / 6.0) ** 0.6
    np.testing.assert_allclose(
        found.scores[real], found.log_probabilities[real] / penalties, rtol=1e-5
    )


def test_log_probability_is_the_models_for_the_returned_ids(tables, found):
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
    tables.tables[..., [SPECIAL.pad, SPECIAL.start]] += 5.0  # by far the likeliest
    found = search(tables, random_limits(20), 3, num_hypotheses=3)
    after = np.arange(found.ids.shape[-1]) >= found.lengths[..., None]
    assert (found.ids[after] == SPECIAL.pad).all()
    assert (found.ids[~after] > SPECIAL.start).all()


@each_vocabulary
def test_beam_of_one_is_greedy_search(tables, limits):
    one = search(tables, limits, 1)
    step = Step(tables.step, tables.state(np.arange(len(limits)), 1))
    problem = Problem(ops.convert_to_tensor(limits))
    greedy = greedy_search(step, problem, SearchOptions(int(max(limits)), SPECIAL))
    np.testing.assert_array_equal(one.ids, greedy.ids)
    np.testing.assert_array_equal(one.lengths, greedy.lengths)
    np.testing.assert_allclose(one.log_probabilities, greedy.log_probabilities, rtol=1e-6)
    np.testing.assert_allclose(one.scores, greedy.scores, rtol=1e-6)


@pytest.mark.parametrize("with_bonus", [False, True], ids=["", "bonus"])
@pytest.mark.parametrize(
    ("beam_size", "alpha", "num_hypotheses", "early_stopping"),
    [(2, 2.0, 2, True), (4, 0.6, 1, False), (64, 0.0, 2, True), (7, 1.0, 3, "never")],
)
def test_the_bound_changes_nothing(
    tables, limits, beam_size, alpha, num_hypotheses, early_stopping, with_bonus
):
    options = {"alpha": alpha, "num_hypotheses": num_hypotheses, "early_stopping": early_stopping}
    options["bonus"] = tables.bonus if with_bonus else None
    stopped = search(tables, limits, beam_size, **options)
    exhaustive = search(tables, limits, beam_size, bounded=False, **options)
    for one, other in zip(stopped, exhaustive, strict=True):
        np.testing.assert_array_equal(one, other)


def steps_taken(tables, limit, **options) -> int:
    indices = []

    def step(ids, state, index):
        indices.append(int(index))
        return tables.step(ids, state, index)

    problem = Problem(ops.convert_to_tensor(np.int32([limit])))
    settings = SearchOptions(limit, SPECIAL, beam_size=2, **options)
    beam_search(Step(step, tables.state([0], 2)), problem, settings)
    return len(indices)


@on_tensorflow
def test_the_bound_saves_steps():
    """The end token's probability is nearly 1, so no longer hypothesis can have a better score."""
    tables = PrefixTables(np.tile(np.float32([0, 0, 10, 0, 0]), (1, 5**LENGTH, 1)), LENGTH)
    assert steps_taken(tables, LENGTH) == 1
    # The second hypothesis ends with the second step.
    assert steps_taken(tables, LENGTH, num_hypotheses=2) == 2


@on_tensorflow
def test_search_ends_when_the_beam_is_full():
    """One hypothesis ends with each step, so a beam of two is full after the second."""
    tables = PrefixTables(np.tile(np.float32([0, 0, 10, 0, 0]), (1, 5**LENGTH, 1)), LENGTH)
    assert steps_taken(tables, LENGTH, bounded=False) == 2


def test_sentences_of_a_batch_do_not_affect_each_other(tables, limits, found):
    for row in range(4):
        single = search(tables, limits[[row]], 4, languages=[row], num_hypotheses=4)
        np.testing.assert_array_equal(single.ids[0], found.ids[row, :, : limits[row]])
        for name in ("lengths", "log_probabilities", "scores"):
            one, other = getattr(single, name)[0], getattr(found, name)[row]
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_one_hypothesis_is_the_first_of_four(tables, limits, found):
    first = search(tables, limits, 4, num_hypotheses=1)
    for many, single in zip(found, first, strict=True):
        np.testing.assert_array_equal(many[:, :1], single)


def scripted(vocabulary_size: int, probabilities: dict[tuple[int, ...], list[float]]):
    """A language with given next-token probabilities per prefix, which has the start token."""
    shape = (1, vocabulary_size**LENGTH, vocabulary_size)
    tables = np.zeros(shape, "float32")
    for prefix, row in probabilities.items():
        code = sum(token * vocabulary_size**n for n, token in enumerate(prefix))
        tables[0, code] = np.log(np.maximum(row, 1e-30))
    return PrefixTables(tables, LENGTH)


def test_finished_hypotheses_do_not_change():
    """By hand, α = 0: "end" has 0.6; "a end" 0.4 · 0.5 = 0.2; "a a end" 0.4 · 0.5 · 1 = 0.2.

    The first stays first while the search continues; a beam of 2 is full before the third.
    """
    tables = scripted(
        4,
        {
            (1,): [0, 0, 0.6, 0.4],
            (1, 3): [0, 0, 0.5, 0.5],
            (1, 3, 3): [0, 0, 1.0, 0],
        },
    )
    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, bounded=False)
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


def test_bonus_can_prefer_the_less_likely_hypothesis():
    """By hand: ln 0.9 - 5 for "end", ln 0.1 for "a end"; token 1 of the state is "a" (3) or 0."""
    tables = scripted(4, {(1,): [0, 0, 0.9, 0.1], (1, 3): [0, 0, 1.0, 0]})

    def bonus(state):
        return ops.where(ops.equal(state.per_hypothesis[:, :, 1], 3), 0.0, -5.0)

    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, bonus=bonus)
    assert [hypothesis.ids for hypothesis in hypotheses_of(found, 0)] == [(3, 2), (2,)]
    np.testing.assert_allclose(found.scores[0], [np.log(0.1), np.log(0.9) - 5], rtol=1e-5)
    np.testing.assert_allclose(found.log_probabilities[0], np.log([0.1, 0.9]), rtol=1e-5)


@pytest.mark.parametrize("special", [SPECIAL, SpecialIds(pad=3, start=4, end=1)])
def test_equal_scores_have_the_documented_order(special):
    """All tokens are equally likely, so every choice is a tie; the oracle's sort is stable."""
    tables = PrefixTables(np.zeros((1, 5**LENGTH, 5), "float32"), LENGTH)
    for beam_size in (2, 3):
        check_against_loop(tables, special, beam_size, alpha=0.0)


def test_of_equal_scores_the_hypothesis_finished_earlier_comes_first():
    """By hand, α = 0: ln 1/4 for "end", and for "a end", because the end is certain after "a"."""
    tables = PrefixTables(np.zeros((1, 4**LENGTH, 4), "float32"), LENGTH)
    tables.tables[0, 1 + 3 * 4, SPECIAL.end] = 1e4
    found = search(tables, np.int32([4]), 2, alpha=0.0, num_hypotheses=2, bounded=False)
    assert [hypothesis.ids for hypothesis in hypotheses_of(found, 0)] == [(2,), (3, 2)]
    assert found.scores[0, 0] == found.scores[0, 1]


def test_missing_hypotheses_have_length_zero_and_a_finite_score():
    """With a limit of 1 there are three hypotheses: one per token besides padding and start."""
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
        (
            {"beam_size": 2, "early_stopping": "always"},
            "early_stopping must be True, False or 'never', got 'always'.",
        ),
    ],
)
def test_error_names_the_bad_option(tables, options, message):
    with pytest.raises(InputError) as error:
        search(tables, np.int32([3]), languages=[0], **options)
    assert str(error.value) == message


@on_tensorflow
def test_graph_with_unknown_sizes_equals_eager(tables):
    import tensorflow as tf

    spec = tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[spec, spec])
    def graph(languages, limits):
        options = SearchOptions(tf.reduce_max(limits), SPECIAL, beam_size=3)
        return beam_search(Step(tables.step, tables.state(languages, 3)), Problem(limits), options)

    limits = random_limits(10)
    for one, other in zip(graph(range(10), limits), search(tables, limits, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
