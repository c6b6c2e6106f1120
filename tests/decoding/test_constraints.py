"""Constrained searches against brute force, a loop over hypotheses, and by hand.

Each random case is one sentence of a batch; each has its own language, limit, minimum and prefix.
"""

import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, Rules, arrays, assert_found, hypotheses_of

from tf_transformer import kernels
from tf_transformer.decoding import (
    NEG_INF,
    Constraints,
    LengthPenalty,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    beam_search,
    greedy_search,
)
from tf_transformer.decoding.constraints import SoFar, rank_next, rank_together
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
OTHER_SPECIAL = SpecialIds(pad=5, start=0, end=3)
VOCABULARY = 6  # three ordinary tokens
LENGTH = 5
LANGUAGES = 40
ALL_SEQUENCES = 3**5 + 3**4 + 3**3 + 3**2 + 3 + 1

# Fields of `Rules`. True: a random value for each sentence.
CASES = {
    "none": {},
    "min length": {"min_length": True},
    "prefix": {"prefix": True},
    "excluded": {"excluded": (4,)},
    "two excluded": {"excluded": (4, 1)},
    "end excluded": {"excluded": (2, 3)},
    "no token twice": {"no_repeat_ngram_size": 1},
    "no bigram twice": {"no_repeat_ngram_size": 2},
    "no trigram twice": {"no_repeat_ngram_size": 3},
    "repetition": {"repetition_penalty": 1.7},
    "min length and prefix": {"min_length": True, "prefix": True},
    "prefix and bigrams": {"prefix": True, "no_repeat_ngram_size": 2},
    "prefix and repetition": {"prefix": True, "repetition_penalty": 1.3},
    "all": {
        **{"min_length": True, "prefix": True, "excluded": (4,)},
        **{"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
    },
}

each_case = pytest.mark.parametrize("fields", CASES.values(), ids=CASES)
# With other special ids, too, where tokens are counted or compared.
each_case_and_special = pytest.mark.parametrize(
    ("fields", "special"),
    [
        *(pytest.param(fields, SPECIAL, id=name) for name, fields in CASES.items()),
        *(
            pytest.param(CASES[name], OTHER_SPECIAL, id=f"{name}, other ids")
            for name in ("prefix and bigrams", "all")
        ),
    ],
)


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(21, LANGUAGES, VOCABULARY, LENGTH)


@pytest.fixture(scope="module")
def limits():
    return np.random.default_rng(22).integers(1, LENGTH + 1, LANGUAGES).astype("int32")


def random_rules(fields: dict, limits, special, seed: int = 23) -> list[Rules]:
    """Rules per sentence: minima up to its limit, and prefixes of up to three tokens."""
    random = np.random.default_rng(seed)
    ordinary = [token for token in range(VOCABULARY) if token not in special]
    rules = []
    for limit in limits:
        prefix = random.choice(ordinary, random.integers(0, 4)).tolist()
        drawn = {"min_length": int(random.integers(0, limit + 1)), "prefix": tuple(prefix)}
        drawn = {name: value for name, value in drawn.items() if name in fields}
        rules.append(Rules(**fields | drawn))
    return rules


def problem_of(limits, rules: list[Rules], special) -> Problem:
    """The limits and rules of the sentences of a batch as a `Problem`."""
    longest = max(len(each.prefix) for each in rules)
    prefix = [[*each.prefix, *[special.pad] * (longest - len(each.prefix))] for each in rules]
    minima = [each.min_length for each in rules]
    return Problem(
        ops.convert_to_tensor(np.int32(limits)),
        min_lengths=ops.convert_to_tensor(np.int32(minima)) if any(minima) else (),
        prefix=ops.convert_to_tensor(np.int32(prefix)) if longest else (),
    )


def constraints_of(rules: Rules) -> Constraints:
    """The rules that are the same for all sentences."""
    _, _, excluded, size, penalty = rules
    return Constraints(excluded=excluded, no_repeat_ngram_size=size, repetition_penalty=penalty)


def search(tables, limits, rules, beam_size, special=SPECIAL, alpha=0.6, **options):
    step = Step(tables.step, tables.state(np.arange(len(limits)), beam_size))
    settings = SearchOptions(
        int(max(limits)),
        special,
        beam_size,
        penalty=LengthPenalty(alpha),
        constraints=constraints_of(rules[0]),
        **{"num_hypotheses": beam_size} | options,
    )
    return arrays(beam_search(step, problem_of(limits, rules, special), settings))


def greedy(tables, limits, rules, special=SPECIAL):
    step = Step(tables.step, tables.state(np.arange(len(limits)), 1))
    options = SearchOptions(int(max(limits)), special, constraints=constraints_of(rules[0]))
    return arrays(greedy_search(step, problem_of(limits, rules, special), options))


# Against oracles


@each_case_and_special
def test_beam_that_holds_all_sequences_equals_brute_force(tables, limits, fields, special):
    rules = random_rules(fields, limits, special)
    found = search(tables, limits, rules, ALL_SEQUENCES, special)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.brute_force(
            language, VOCABULARY, limit, special, 0.6, rules[row]
        )
        assert_found(found, row, expected)


@each_case
def test_narrow_beam_equals_its_definition(tables, limits, fields):
    rules = random_rules(fields, limits, SPECIAL)
    found = search(tables, limits, rules, 3)
    for row, limit in enumerate(limits):
        language = tables.language(row, SPECIAL)
        expected = reference_search.beam_search(language, limit, SPECIAL, 3, 0.6, rules[row])
        assert_found(found, row, expected)


@each_case_and_special
def test_greedy_search_adds_the_likeliest_allowed_token(tables, limits, fields, special):
    rules = random_rules(fields, limits, special)
    found = greedy(tables, limits, rules, special)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.greedy(language, limit, special, 0.6, rules[row])
        assert_found(found, row, [] if expected is None else [expected])


@pytest.mark.parametrize("name", ["min length", "repetition", "all"])
def test_the_bound_changes_nothing(tables, limits, name):
    rules = random_rules(CASES[name], limits, SPECIAL)
    stopped, exhaustive = (
        search(tables, limits, rules, 4, num_hypotheses=1, bounded=bounded, alpha=2.0)
        for bounded in (True, False)
    )
    for one, other in zip(stopped, exhaustive, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@each_case_and_special
def test_thousands_of_random_cases(fields, special):
    tables = PrefixTables.random(31, 600, VOCABULARY, LENGTH)
    limits = np.random.default_rng(32).integers(1, LENGTH + 1, 600).astype("int32")
    rules = random_rules(fields, limits, special, seed=33)
    for beam_size in (1, 2, 4, 7):
        found = search(tables, limits, rules, beam_size, special, bounded=False, alpha=1.0)
        for row, limit in enumerate(limits):
            language = tables.language(row, special)
            expected = reference_search.beam_search(
                language, limit, special, beam_size, 1.0, rules[row]
            )
            assert_found(found, row, expected)


# One constraint at a time


def test_no_hypothesis_ends_before_its_minimum(tables, limits):
    tables = PrefixTables(tables.tables + 15.0 * (np.arange(VOCABULARY) == SPECIAL.end), LENGTH)
    minima = np.minimum(limits, 3)
    rules = [Rules(min_length=int(minimum)) for minimum in minima]
    for found in (search(tables, limits, rules, 3), greedy(tables, limits, rules)):
        assert (found.lengths[:, 0] == minima).all()  # the end token is by far the likeliest


def test_prefix_starts_every_hypothesis_and_its_log_probability_counts(tables, limits):
    limits = np.maximum(limits, 4)
    rules = random_rules(CASES["all"], limits, SPECIAL)
    found = search(tables, limits, rules, 3)
    prefixes = [each.prefix for each in rules]
    assert {len(prefix) for prefix in prefixes} == {0, 1, 2, 3}  # in one batch
    for row, prefix in enumerate(prefixes):
        for hypothesis in hypotheses_of(found, row):
            assert hypothesis.ids[: len(prefix)] == prefix
            expected = reference_search.log_probability(
                tables.language(row, SPECIAL), hypothesis.ids, rules[row]
            )
            np.testing.assert_allclose(hypothesis.log_probability, expected, rtol=1e-5)


def test_prefix_may_end_a_hypothesis(tables):
    rules = [Rules(prefix=(3, 2)), Rules(prefix=(4, 4, 5)), Rules(prefix=(5,))]
    for found in (search(tables, [5, 5, 5], rules, 1), greedy(tables, [5, 5, 5], rules)):
        assert found.ids[0, 0].tolist() == [3, 2, 0, 0, 0]
        assert found.lengths[0, 0] == 2


def test_prefix_may_end_a_hypothesis_before_its_minimum(tables):
    """No other constraint applies to a prefix; see `Problem.prefix`."""
    rules = [Rules(prefix=(3, 2), min_length=4), Rules(prefix=(5,), min_length=4)]
    for found in (search(tables, [5, 5], rules, 1), greedy(tables, [5, 5], rules)):
        assert found.ids[0, 0].tolist() == [3, 2, 0, 0, 0]
        assert found.lengths[0, 0] == 2
        assert found.lengths[1, 0] >= 4


def test_prefix_longer_than_the_limit_is_cut(tables):
    rules = [Rules(prefix=(3, 4, 5, 3)), Rules(prefix=())]
    for found in (search(tables, [2, 4], rules, 2), greedy(tables, [2, 4], rules)):
        assert found.ids[0, 0].tolist() == [3, 4, 0, 0]
        assert found.lengths[0, 0] == 2


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_occurs_twice(size):
    """Token 3 is always the likeliest, so an unconstrained search would repeat it."""
    tables = PrefixTables.random(24, languages=20, vocabulary_size=5, length=12)
    tables.tables[..., 3] += 6.0
    rules = [Rules(no_repeat_ngram_size=size)] * 20
    limits = [12] * 20
    for found in (search(tables, limits, rules, 4), greedy(tables, limits, rules)):
        all_ids = [hypothesis.ids for row in range(20) for hypothesis in hypotheses_of(found, row)]
        assert all_ids
        assert not any(reference_search.repeats(ids, size) for ids in all_ids)
        # The token is repeated as often as the rule allows.
        assert any(ids[:size] == (3,) * size for ids in all_ids)


def test_repetition_penalty_by_hand():
    """Probabilities 1/4 each, penalty 2: a repeated token counts ln 1/16, others ln 1/4."""
    tables = PrefixTables(np.zeros((1, 4**3, 4), "float32"), 3)
    found = search(tables, [3], [Rules(repetition_penalty=2.0)], 4, alpha=0.0)
    ids = [hypothesis.ids for hypothesis in hypotheses_of(found, 0)]
    assert ids == [(2,), (3, 2), (3, 3, 2), (3, 3, 3)]
    scores = np.log(0.25) * np.array([1, 2, 4, 5])
    np.testing.assert_allclose(found.scores[0], scores, rtol=1e-6)
    np.testing.assert_allclose(found.log_probabilities[0], scores, rtol=1e-6)


each_dead_end = pytest.mark.parametrize(
    "rules",
    [Rules(excluded=(2, 3, 4, 5)), Rules(excluded=(2, 4, 5), no_repeat_ngram_size=1)],
    ids=["at once", "after one token"],
)


@each_dead_end
def test_dead_end_gives_no_hypothesis(tables, rules):
    """No token is allowed, at once or after one token; the last sentence has a limit of one."""
    limits, batch = [4, 4, 1], [rules, rules._replace(min_length=1), rules]
    lengths = [0, 0, 0 if 3 in rules.excluded else 1]
    for found in (search(tables, limits, batch, 3), greedy(tables, limits, batch)):
        assert found.lengths[:, 0].tolist() == lengths
        missing = found.lengths == 0
        assert (found.scores[missing] == np.float32(NEG_INF)).all()
        assert (found.log_probabilities[missing] == np.float32(NEG_INF)).all()


@each_dead_end
def test_dead_end_leaves_only_padding(tables, rules):
    for found in (search(tables, [4], [rules], 3), greedy(tables, [4], [rules])):
        assert (found.ids == SPECIAL.pad).all()


def test_minimum_above_the_limit_becomes_the_limit(tables):
    """The end token is allowed as the last token; see `Problem.min_lengths`."""
    tables = PrefixTables(tables.tables + 15.0 * (np.arange(VOCABULARY) == SPECIAL.end), LENGTH)
    rules = [Rules(min_length=9), Rules(min_length=3)]
    for found in (search(tables, [3, 5], rules, 2), greedy(tables, [3, 5], rules)):
        assert found.lengths[:, 0].tolist() == [3, 3]
        assert (found.ids[:, 0, 2] == SPECIAL.end).all()


# One step


@pytest.fixture(params=kernels.SETS)
def each_kernel_set(request):
    with kernels.use(kernels.SETS[request.param]):
        yield


def options_of(constraints, special=SPECIAL) -> SearchOptions:
    return SearchOptions(9, special, constraints=constraints)


def nothing_so_far(*shape, **given) -> SoFar:
    """The state before the first step."""
    return SoFar(ops.zeros(shape, "int32"), 0, Problem(ops.full(shape[:1], 9), **given))


def ranked(logits, count, constraints=Constraints(), ids=(), special=SPECIAL, min_length=0):
    """{token: log-probability} of the tokens that may follow one hypothesis, best first."""
    row = ops.convert_to_tensor(np.int32([[[*ids, *[special.pad] * 3]]]))
    logits = ops.convert_to_tensor(np.float32([[logits]]))
    problem = problem_of([9], [Rules(min_length=min_length)], special)
    options = options_of(constraints, special)
    found = rank_next(logits, count, SoFar(row, len(ids), problem), options)
    values, tokens = (ops.convert_to_numpy(field)[0, 0] for field in found)
    return {
        int(token): float(value)
        for value, token in zip(values, tokens, strict=True)
        if value > NEG_INF / 2
    }


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [(Rules(), {2, 3, 4, 5}), (Rules(excluded=(3,)), {2, 4, 5}), (Rules(min_length=5), {3, 4, 5})],
    ids=["special", "excluded", "end too early"],
)
@pytest.mark.usefixtures("each_kernel_set")
def test_exclusion_does_not_change_other_probabilities(rules, allowed):
    """Six equal logits: ln 1/6 for each allowed token."""
    assert ranked(np.zeros(6), 6, constraints_of(rules), min_length=rules.min_length) == {
        token: pytest.approx(np.log(1 / 6), rel=1e-6) for token in allowed
    }


@pytest.mark.usefixtures("each_kernel_set")
def test_tokens_are_ranked_by_log_probability():
    logits = [1.0, 0.0, 3.0, 2.5, -1.0, 4.0]
    log_p = reference_search.log_softmax(logits)
    expected = {token: pytest.approx(log_p[token], rel=1e-6) for token in (5, 2, 3, 4)}
    found = ranked(logits, 6)
    assert found == expected
    assert list(found) == [5, 2, 3, 4]


@pytest.mark.parametrize("fields", [{}, {"excluded": (9,)}], ids=["unconstrained", "constrained"])
@pytest.mark.usefixtures("each_kernel_set")
def test_enough_allowed_tokens_are_ranked(fields):
    """Although padding, start and end are the likeliest, and all three are excluded."""
    logits = np.arange(20.0)[::-1]
    assert list(ranked(logits, 2, Constraints(**fields), min_length=5))[:2] == [3, 4]


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["unconstrained", "constrained"])
@pytest.mark.usefixtures("each_kernel_set")
def test_no_more_tokens_are_ranked_than_the_vocabulary_has(fields):
    options = options_of(Constraints(**fields))
    found = rank_next(ops.zeros((2, 3, 6)), 9, nothing_so_far(2, 3, 4), options)
    assert [tuple(field.shape) for field in found] == [(2, 3, 6)] * 2


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["unconstrained", "constrained"])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.usefixtures("each_kernel_set")
def test_log_probability_is_never_positive(fields, size):
    logits = size * np.random.default_rng(25).normal(size=(20, 5, 300)).astype("float32")
    options = options_of(Constraints(**fields))
    found = rank_next(ops.convert_to_tensor(logits), 300, nothing_so_far(20, 5, 4), options)
    log_p = ops.convert_to_numpy(found.log_probabilities)
    assert log_p.max() <= 0
    assert np.isfinite(log_p).all()


@pytest.mark.parametrize("size", [7, 640], ids="vocabulary={}".format)
@pytest.mark.parametrize(
    ("excluded", "min_lengths"),
    [((), None), ((4,), None), ((), [5, 1, 5])],
    ids=["special", "excluded", "end too early"],
)
@pytest.mark.usefixtures("each_kernel_set")
def test_extensions_of_a_sentence_are_ranked_together(excluded, min_lengths, size):
    """Against a sort of all; logits and totals are small integers, so many scores are equal."""
    random = np.random.default_rng(26)
    logits = random.integers(0, 4, (3, 4, size)).astype("float32")
    logits[..., SPECIAL] = 9  # by far the likeliest
    totals = -random.integers(0, 3, (3, 4)).astype("float32")
    log_p = np.apply_along_axis(reference_search.log_softmax, -1, logits) + totals[..., None]
    log_p[..., [SPECIAL.pad, SPECIAL.start, *excluded]] = -np.inf
    given = {}
    if min_lengths is not None:
        log_p[np.array(min_lengths) > 1, :, SPECIAL.end] = -np.inf
        given["min_lengths"] = ops.convert_to_tensor(np.int32(min_lengths))
    # Rounded to six digits, so that equal scores are exactly equal and a stable sort orders them.
    expected = np.argsort(-log_p.reshape(3, -1).round(6), axis=-1, kind="stable")[:, :8]

    extensions, parents = rank_together(
        ops.convert_to_tensor(logits),
        ops.convert_to_tensor(totals),
        8,
        nothing_so_far(3, 4, 4, **given),
        options_of(Constraints(excluded=excluded)),
    )
    values, tokens, parents = map(ops.convert_to_numpy, (*extensions, parents))
    for sentence in range(3):
        allowed = values[sentence] > NEG_INF / 2
        indices = parents[sentence] * size + tokens[sentence]
        np.testing.assert_array_equal(indices[allowed][:8], expected[sentence])
        np.testing.assert_allclose(
            values[sentence][allowed][:8],
            log_p[sentence].ravel()[expected[sentence]],
            rtol=1e-6,
        )


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["unconstrained", "constrained"])
@pytest.mark.usefixtures("each_kernel_set")
def test_no_more_extensions_are_ranked_than_there_are(fields):
    so_far, options = nothing_so_far(2, 3, 4), options_of(Constraints(**fields))
    logits, totals = ops.zeros((2, 3, 6)), ops.zeros((2, 3))
    extensions, parents = rank_together(logits, totals, 99, so_far, options)
    found = (*extensions, parents)
    assert [tuple(field.shape) for field in found] == [(2, 18)] * 3


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ngrams_by_hand(size):
    """After 3 4 5 3 4: size 1 excludes 3, 4 and 5; sizes 2 and 3 exclude 5, which follows 3 4."""
    allowed = ranked(np.zeros(7), 7, Constraints(no_repeat_ngram_size=size), ids=(3, 4, 5, 3, 4))
    assert set(allowed) == ({2, 6} if size == 1 else {2, 3, 4, 6})


@pytest.mark.parametrize("size", [2, 3, 6])
def test_short_hypotheses_have_no_ngrams(size):
    """Padding after the tokens and before the first is not part of an n-gram."""
    constraints = Constraints(no_repeat_ngram_size=size)
    for ids in [(), (3,)]:
        assert set(ranked(np.zeros(5), 5, constraints, ids)) == {2, 3, 4}
        # With a padding id among the ordinary tokens.
        other = SpecialIds(pad=4, start=1, end=2)
        assert set(ranked(np.zeros(5), 5, constraints, ids, other)) == {0, 2, 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"no_repeat_ngram_size": -1},
            "no_repeat_ngram_size must not be negative, got -1.",
        ),
        (
            {"repetition_penalty": 0.9},
            "repetition_penalty must be at least 1 (less would reward repetition), got 0.9.",
        ),
    ],
)
def test_error_names_the_bad_constraint(options, message):
    with pytest.raises(InputError) as error:
        Constraints(**options)
    assert str(error.value) == message
