"""Greedy search against a loop over tokens; sampling against its distribution."""

import math

import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, Rules, arrays, assert_found, hypotheses_of

from tf_transformer.decoding import (
    NEG_INF,
    Constraints,
    LengthPenalty,
    Problem,
    Sampling,
    SearchOptions,
    SpecialIds,
    Step,
    greedy_search,
    sample,
)
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH = 5
LANGUAGES = 200
LARGEST = np.float32(0.99999994)  # the largest float32 below 1

each_alpha = pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(seed=11, languages=LANGUAGES, vocabulary_size=5, length=LENGTH)


@pytest.fixture(scope="module")
def limits():
    return np.random.default_rng(12).integers(1, LENGTH + 1, LANGUAGES).astype("int32")


def search(tables, limits, languages=None, alpha=0.6):
    languages = np.arange(len(limits)) if languages is None else languages
    step = Step(tables.step, tables.state(languages, beam_size=1))
    options = SearchOptions(int(max(limits)), SPECIAL, penalty=LengthPenalty(alpha))
    return arrays(greedy_search(step, Problem(ops.convert_to_tensor(limits)), options))


# Greedy search


@each_alpha
def test_greedy_search_adds_the_likeliest_token_until_end_or_limit(tables, limits, alpha):
    found = search(tables, limits, alpha=alpha)
    assert found.ids.shape == (LANGUAGES, 1, LENGTH)
    for row, limit in enumerate(limits):
        language = tables.language(row, SPECIAL)
        expected = reference_search.greedy(language, limit, SPECIAL, alpha)
        assert_found(found, row, [expected])
        assert (found.ids[row, 0, len(expected.ids) :] == SPECIAL.pad).all()


def test_sentences_of_a_batch_do_not_affect_each_other(tables, limits):
    together = search(tables, limits)
    for row in range(5):
        single = search(tables, limits[[row]], languages=[row])
        np.testing.assert_array_equal(single.ids[0, 0], together.ids[row, 0, : limits[row]])
        np.testing.assert_allclose(single.scores[0], together.scores[row], rtol=1e-6)


def test_of_equally_likely_tokens_the_lowest_id_wins():
    tables = PrefixTables(np.zeros((1, 5**LENGTH, 5), "float32"), LENGTH)
    found = search(tables, np.int32([3]))
    np.testing.assert_array_equal(found.ids, [[[2, 0, 0]]])  # 2 is the end token


# Sampling


def draw(
    tables, limits, numbers, sampling=Sampling(), languages=None, constraints=Constraints(), **given
):
    """The package's samples for one sentence per language, as arrays; numbers (B, N, L)."""
    languages = np.arange(len(limits)) if languages is None else languages
    step = Step(tables.step, tables.state(languages, np.shape(numbers)[1]))
    uniforms = ops.convert_to_tensor(np.float32(numbers))
    problem = Problem(ops.convert_to_tensor(np.int32(limits)), uniforms=uniforms, **given)
    options = SearchOptions(int(max(limits)), SPECIAL, constraints=constraints)
    return arrays(sample(step, problem, options, sampling))


def random_numbers(*shape) -> np.ndarray:
    return np.random.default_rng(13).random(shape, dtype="float32")


@pytest.fixture(scope="module")
def drawn(tables, limits):
    return draw(tables, limits, random_numbers(LANGUAGES, 6, LENGTH), Sampling(temperature=2.0))


def test_sampling_from_the_likeliest_token_is_greedy_search(tables, limits):
    numbers = random_numbers(LANGUAGES, 2, LENGTH)
    found = draw(tables, limits, numbers, Sampling(temperature=3.0, top_k=1))
    greedy = search(tables, limits)
    for sample_number in range(2):
        np.testing.assert_array_equal(found.ids[:, sample_number], greedy.ids[:, 0])
        np.testing.assert_array_equal(found.lengths[:, sample_number], greedy.lengths[:, 0])
        for ours, theirs in zip(found[2:], greedy[2:], strict=True):
            np.testing.assert_allclose(ours[:, sample_number], theirs[:, 0], rtol=1e-6)


def test_log_probability_does_not_depend_on_the_temperature(tables, drawn):
    for row in range(LANGUAGES):
        language = tables.language(row, SPECIAL)
        for hypothesis in hypotheses_of(drawn, row):
            log_p = reference_search.log_probability(language, hypothesis.ids)
            expected = reference_search.scored(hypothesis.ids, log_p, alpha=0.6)
            np.testing.assert_allclose(hypothesis[1:], expected[1:], rtol=1e-5)


def test_samples_are_sorted_and_complete(drawn, limits):
    assert (np.diff(drawn.scores, axis=1) <= 0).all()
    assert (drawn.lengths > 0).all()
    for row, limit in enumerate(limits):
        for hypothesis in hypotheses_of(drawn, row):
            ended = hypothesis.ids[-1] == SPECIAL.end
            assert ended or len(hypothesis.ids) == limit
            assert SPECIAL.end not in hypothesis.ids[:-1]
    after = np.arange(LENGTH) >= drawn.lengths[..., None]
    assert (drawn.ids[after] == SPECIAL.pad).all()


def test_samples_of_a_sentence_do_not_depend_on_its_batch(tables, limits):
    numbers = random_numbers(LANGUAGES, 3, LENGTH)
    together = draw(tables, limits, numbers)
    others = np.int32([7, 3, 100])
    some = draw(tables, limits[others], numbers[others], languages=others)
    for ours, theirs in zip(some, together, strict=True):
        if ours.ndim == 3:  # ids, as many as the largest limit of the batch
            theirs = theirs[:, :, : ours.shape[2]]
        np.testing.assert_allclose(ours, theirs[others], rtol=1e-6)


def test_unused_random_numbers_change_nothing(tables, limits):
    numbers = random_numbers(LANGUAGES, 3, LENGTH + 4)
    few, many = (draw(tables, limits, n) for n in (numbers[:, :, :LENGTH], numbers))
    for one, other in zip(few, many, strict=True):
        np.testing.assert_array_equal(one, other)


# The distribution of one token

SAMPLINGS = {
    "plain": Sampling(),
    "cold": Sampling(temperature=0.3),
    "hot": Sampling(temperature=5.0),
    "top 1": Sampling(top_k=1),
    "top 3": Sampling(temperature=2.0, top_k=3),
    "top of all": Sampling(top_k=50),
    "top half": Sampling(top_p=0.5),
    "top nine tenths": Sampling(temperature=2.0, top_p=0.9),
    "likeliest by top p": Sampling(top_p=1e-6),
    "both": Sampling(temperature=2.0, top_k=4, top_p=0.8),
}
RULES = {
    "": Rules(),
    "end too early": Rules(min_length=2),
    "excluded": Rules(excluded=(4, 7)),
    "prefix": Rules(prefix=(5,)),
}
VOCABULARY = 9
GRID = (np.arange(2000) + 0.5) / 2000

# Each distribution without rules, and two of them with each rule.
PAIRS = [
    *((name, "") for name in SAMPLINGS),
    *((name, rule) for rule in RULES if rule for name in ("plain", "both")),
]
each_pair = pytest.mark.parametrize(
    ("sampling", "rules"),
    [
        pytest.param(SAMPLINGS[name], RULES[rule], id=f"{name}, {rule}".strip(", "))
        for name, rule in PAIRS
    ],
)


@pytest.fixture(scope="module")
def first_tokens():
    """Languages of one token; in many of them padding or start is likely."""
    return PrefixTables.random(14, languages=12, vocabulary_size=VOCABULARY, length=1)


def given_by(rules: Rules, batch: int) -> dict:
    """The rules as fields of a `Problem`."""
    return {
        "min_lengths": ops.full((batch,), rules.min_length, "int32") if rules.min_length else (),
        "prefix": ops.full((batch, 1), rules.prefix[0], "int32") if rules.prefix else (),
    }


def first_token_counts(tables, numbers, sampling, rules) -> np.ndarray:
    """How often each token is drawn first with the numbers (N,), in each language: (R, V)."""
    batch = len(tables.tables)
    # The limit is 2, so that the end token may be too early; the languages have one prefix.
    tables = PrefixTables(tables.tables, length=2)
    numbers = np.broadcast_to(np.float32(numbers)[:, None], (batch, len(numbers), 2))
    constraints = Constraints(excluded=rules.excluded)
    given = given_by(rules, batch)
    found = draw(tables, [2] * batch, numbers, sampling, constraints=constraints, **given)
    return np.stack([np.bincount(ids[:, 0], minlength=tables.vocabulary_size) for ids in found.ids])


def next_distribution(language, ids, limit: int, sampling: Sampling, rules: Rules) -> dict:
    """The probability of each token that can be drawn after `ids`."""
    allowed = reference_search.next_tokens(language, ids, limit, SPECIAL, rules)
    options = (sampling.temperature, sampling.top_k, sampling.top_p)
    return reference_search.sampling_distribution(allowed, *options)


def expected_distribution(tables, row: int, sampling: Sampling, rules: Rules) -> np.ndarray:
    distribution = next_distribution(tables.language(row, SPECIAL), (), 2, sampling, rules)
    return np.array([distribution.get(token, 0.0) for token in range(tables.vocabulary_size)])


@each_pair
def test_evenly_spaced_numbers_draw_tokens_by_their_probabilities(first_tokens, sampling, rules):
    """Up to one of 2,000 numbers, and tokens of probability 0 are never drawn."""
    counts = first_token_counts(first_tokens, GRID, sampling, rules)
    for row, ours in enumerate(counts):
        expected = expected_distribution(first_tokens, row, sampling, rules)
        assert (ours[expected == 0] == 0).all()
        np.testing.assert_allclose(ours, expected * len(GRID), atol=1.01)


@each_pair
def test_smallest_and_largest_number_draw_allowed_tokens(first_tokens, sampling, rules):
    """The likeliest and the least likely, except for probabilities that float32 rounds off."""
    counts = first_token_counts(first_tokens, np.array([0.0, LARGEST]), sampling, rules)
    for row, ours in enumerate(counts):
        expected = expected_distribution(first_tokens, row, sampling, rules)
        drawn_tokens = np.repeat(np.arange(VOCABULARY), ours)
        likelier, other = sorted(drawn_tokens, key=lambda token: -expected[token])
        assert likelier == expected.argmax()
        assert expected[other] > 0
        assert expected[expected < expected[other]].sum() < 3e-7


def test_excluded_tokens_do_not_count_for_top_k():
    """Padding, start and end are likelier than 3, 4 and 5, but top 2 keeps 3 and 4: e^-1, e^-2."""
    tables = PrefixTables(np.float32([[[9, 8, 7, -1, -2, -3]]]), length=1)
    counts = first_token_counts(tables, GRID, Sampling(top_k=2), Rules(min_length=2))
    likelier = np.e / (np.e + 1) * len(GRID)
    expected = [[0, 0, 0, likelier, len(GRID) - likelier, 0]]
    np.testing.assert_allclose(counts, expected, atol=1.01)


# The distribution of whole hypotheses


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=0.5, top_k=3, top_p=0.95)], ids=["plain", "cut"]
)
def test_hypotheses_are_drawn_by_their_probabilities(sampling):
    """Pearson's χ² over all hypotheses of up to three tokens, with random numbers."""
    samples, limit = 20_000, 3
    tables = PrefixTables.random(15, languages=4, vocabulary_size=5, length=limit)
    found = draw(tables, [limit] * 4, random_numbers(4, samples, limit), sampling)
    for row in range(4):
        language = tables.language(row, SPECIAL)
        drawn_ids = [hypothesis.ids for hypothesis in hypotheses_of(found, row)]
        statistic, outcomes, total = 0.0, 0, 0.0
        for ids in reference_search.all_sequences(5, limit, SPECIAL):
            probability = sequence_probability(language, ids, limit, sampling)
            total += probability
            count = drawn_ids.count(ids)
            if probability == 0:
                assert count == 0
            elif samples * probability >= 5:  # where the approximation holds
                expected = samples * probability
                statistic += (count - expected) ** 2 / expected
                outcomes += 1
        assert total == pytest.approx(1.0)
        # χ² of k degrees of freedom has mean k and variance 2k: five standard deviations.
        assert statistic < outcomes + 5 * np.sqrt(2 * outcomes)


def sequence_probability(language, ids, limit: int, sampling: Sampling) -> float:
    """Π q(token | tokens before it), where q is the distribution that tokens are drawn from."""
    distributions = (
        next_distribution(language, ids[:n], limit, sampling, Rules()) for n in range(len(ids))
    )
    return math.prod(q.get(token, 0.0) for q, token in zip(distributions, ids, strict=True))


# With constraints, and errors


def test_samples_obey_constraints(tables):
    limits = np.full(LANGUAGES, LENGTH, "int32")
    rules = Rules(min_length=3, prefix=(3,), no_repeat_ngram_size=3, repetition_penalty=1.5)
    constraints = Constraints(no_repeat_ngram_size=3, repetition_penalty=1.5)
    numbers = random_numbers(LANGUAGES, 4, LENGTH)
    given = given_by(rules, LANGUAGES)
    found = draw(tables, limits, numbers, Sampling(), constraints=constraints, **given)
    for row in range(LANGUAGES):
        hypotheses = hypotheses_of(found, row)
        assert len(hypotheses) == 4
        for hypothesis in hypotheses:
            assert reference_search.obeys(hypothesis.ids, LENGTH, SPECIAL, rules)
            expected = reference_search.log_probability(
                tables.language(row, SPECIAL), hypothesis.ids, rules
            )
            np.testing.assert_allclose(hypothesis.log_probability, expected, rtol=1e-5)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1e-6, top_k=2, top_p=0.5)])
def test_dead_end_gives_no_sample(tables, sampling):
    constraints = Constraints(excluded=(2, 3, 4))
    found = draw(tables, [4], random_numbers(1, 3, 4), sampling, constraints=constraints)
    assert (found.lengths == 0).all()
    assert (found.scores == np.float32(NEG_INF)).all()
    assert (found.log_probabilities == np.float32(NEG_INF)).all()


def test_sampling_without_random_numbers_is_an_error(tables):
    step = Step(tables.step, tables.state([0], 2))
    with pytest.raises(InputError, match="sampling needs random numbers"):
        sample(step, Problem(ops.full((1,), 3)), SearchOptions(3, SPECIAL), Sampling())


def test_dead_end_leaves_only_padding(tables):
    constraints = Constraints(excluded=(2, 3, 4))
    found = draw(tables, [4], random_numbers(1, 3, 4), constraints=constraints)
    assert (found.ids == SPECIAL.pad).all()


@pytest.mark.parametrize("temperature", [1e-6, 1e6])
@pytest.mark.parametrize("extreme", [1e4, -1e4, -np.inf])
def test_extreme_logits_and_temperatures_give_finite_numbers(temperature, extreme):
    tables = PrefixTables.random(16, languages=20, vocabulary_size=6, length=LENGTH)
    tables.tables[..., 3] = extreme
    for top_k, top_p in ((0, 1.0), (2, 0.5)):
        sampling = Sampling(temperature, top_k, top_p)
        found = draw(tables, [LENGTH] * 20, random_numbers(20, 3, LENGTH), sampling)
        assert np.isfinite(found.log_probabilities).all()
        assert np.isfinite(found.scores).all()
        assert (found.lengths > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"temperature": 0.0},
            "temperature must be positive, got 0.0. "
            "For the likeliest token, use greedy search: a beam of 1 without sampling.",
        ),
        ({"top_k": -1}, "top_k must not be negative, got -1."),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0."),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5."),
    ],
)
def test_error_names_the_bad_option(options, message):
    with pytest.raises(InputError) as error:
        Sampling(**options)
    assert str(error.value) == message
