"""What a search may not choose: against brute force, a plain loop, and by hand.

Each random case is one sentence of a batch, with a language, a limit, a minimum and a prefix of
its own.
"""

import numpy as np
import pytest
import reference_search
from keras import ops
from reference_search import PrefixTables, Rules, arrays, assert_found, hypotheses_of

from tf_transformer.decoding import Constraints, SpecialIds, beam_search, greedy_search
from tf_transformer.decoding.constraints import rank_next, rank_together
from tf_transformer.decoding.hypotheses import NEG_INF
from tf_transformer.errors import InputError

SPECIAL = SpecialIds(pad=0, start=1, end=2)
OTHER_SPECIAL = SpecialIds(pad=5, start=0, end=3)
VOCABULARY = 6  # three ordinary tokens
LENGTH = 5
LANGUAGES = 40
WHOLE_SPACE = 3**5 + 3**4 + 3**3 + 3**2 + 3 + 1

# Fields of `Rules`. True: every sentence has one of its own.
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
# Other ids where tokens are counted or compared.
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
    """A sentence's minimum is at most its limit; its prefix has up to three tokens, or none."""
    random = np.random.default_rng(seed)
    ordinary = [token for token in range(VOCABULARY) if token not in special]
    rules = []
    for limit in limits:
        prefix = random.choice(ordinary, random.integers(0, 4)).tolist()
        own = {"min_length": int(random.integers(0, limit + 1)), "prefix": tuple(prefix)}
        own = {name: value for name, value in own.items() if name in fields}
        rules.append(Rules(**fields | own))
    return rules


def constraints_of(rules: list[Rules], special) -> Constraints:
    """What the package takes for a batch of sentences with these rules."""
    longest = max(len(each.prefix) for each in rules)
    prefix = [[*each.prefix, *[special.pad] * (longest - len(each.prefix))] for each in rules]
    minima = [each.min_length for each in rules]
    _, _, excluded, size, penalty = rules[0]
    return Constraints(
        min_lengths=ops.convert_to_tensor(np.int32(minima)) if any(minima) else None,
        prefix=ops.convert_to_tensor(np.int32(prefix)) if longest else None,
        excluded=excluded,
        no_repeat_ngram_size=size,
        repetition_penalty=penalty,
    )


def search(tables, limits, rules, beam_size, special=SPECIAL, **options):
    return arrays(
        beam_search(
            tables.step,
            tables.state(np.arange(len(limits)), beam_size),
            ops.convert_to_tensor(np.int32(limits)),
            int(max(limits)),
            special,
            beam_size,
            constraints=constraints_of(rules, special),
            **{"num_hypotheses": beam_size} | options,
        )
    )


def greedy(tables, limits, rules, special=SPECIAL):
    return arrays(
        greedy_search(
            tables.step,
            tables.state(np.arange(len(limits)), 1),
            ops.convert_to_tensor(np.int32(limits)),
            int(max(limits)),
            special,
            constraints=constraints_of(rules, special),
        )
    )


# Against oracles


@each_case_and_special
def test_beam_as_wide_as_the_space_finds_all_that_keeps_the_rules(tables, limits, fields, special):
    rules = random_rules(fields, limits, special)
    found = search(tables, limits, rules, WHOLE_SPACE, special)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        every = reference_search.brute_force(language, VOCABULARY, limit, special, 0.6, rules[row])
        assert_found(found, row, every)


@each_case
def test_narrow_beam_is_the_definition(tables, limits, fields):
    rules = random_rules(fields, limits, SPECIAL)
    found = search(tables, limits, rules, 3)
    for row, limit in enumerate(limits):
        language = tables.language(row, SPECIAL)
        expected = reference_search.beam_search(language, limit, SPECIAL, 3, 0.6, rules[row])
        assert_found(found, row, expected)


@each_case_and_special
def test_greedy_search_takes_the_likeliest_token_that_is_left(tables, limits, fields, special):
    rules = random_rules(fields, limits, special)
    found = greedy(tables, limits, rules, special)
    for row, limit in enumerate(limits):
        language = tables.language(row, special)
        expected = reference_search.greedy(language, limit, special, 0.6, rules[row])
        assert_found(found, row, [] if expected is None else [expected])


@pytest.mark.parametrize("name", ["min length", "repetition", "all"])
def test_early_stop_changes_nothing(tables, limits, name):
    rules = random_rules(CASES[name], limits, SPECIAL)
    stopped, exhaustive = (
        search(tables, limits, rules, 4, num_hypotheses=1, early_stop=early_stop, alpha=2.0)
        for early_stop in (True, False)
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
        found = search(tables, limits, rules, beam_size, special, early_stop=False, alpha=1.0)
        for row, limit in enumerate(limits):
            language = tables.language(row, special)
            expected = reference_search.beam_search(
                language, limit, special, beam_size, 1.0, rules[row]
            )
            assert_found(found, row, expected)


# What each is there for


def test_no_translation_ends_before_its_minimum(tables, limits):
    tables = PrefixTables(tables.tables + 15.0 * (np.arange(VOCABULARY) == SPECIAL.end), LENGTH)
    minima = np.minimum(limits, 3)
    rules = [Rules(min_length=int(minimum)) for minimum in minima]
    for found in (search(tables, limits, rules, 3), greedy(tables, limits, rules)):
        assert (found.lengths[:, 0] == minima).all()  # so likely is the end


def test_prefix_starts_every_hypothesis_and_counts_with_the_models_own_probability(tables, limits):
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


def test_prefix_may_end_the_translation(tables):
    rules = [Rules(prefix=(3, 2)), Rules(prefix=(4, 4, 5)), Rules(prefix=(5,))]
    for found in (search(tables, [5, 5, 5], rules, 1), greedy(tables, [5, 5, 5], rules)):
        assert found.ids[0, 0].tolist() == [3, 2, 0, 0, 0]
        assert found.lengths[0, 0] == 2


def test_prefix_may_end_the_translation_before_its_minimum(tables):
    """No other constraint holds for a prefix, as the documentation says."""
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
def test_no_ngram_comes_twice(size):
    """One token is the likeliest everywhere, so that without the rule all would be repetition."""
    tables = PrefixTables.random(24, languages=20, vocabulary_size=5, length=12)
    tables.tables[..., 3] += 6.0
    rules = [Rules(no_repeat_ngram_size=size)] * 20
    limits = [12] * 20
    for found in (search(tables, limits, rules, 4), greedy(tables, limits, rules)):
        every = [ids.ids for row in range(20) for ids in hypotheses_of(found, row)]
        assert every
        assert not any(reference_search.repeats(ids, size) for ids in every)
        # As often as the rule lets it come in a row.
        assert any(ids[:size] == (3,) * size for ids in every)


def test_repetition_penalty_by_hand():
    """Probabilities 1/4 each, penalty 2: a token that was there counts ln 1/16, others ln 1/4."""
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
    ids=["at once", "after a token"],
)


@each_dead_end
def test_dead_end_is_no_hypothesis(tables, rules):
    """Nothing may follow, at once or after one token; another sentence's limit comes before."""
    limits, batch = [4, 4, 1], [rules, rules._replace(min_length=1), rules]
    alive = [0, 0, 0 if 3 in rules.excluded else 1]
    for found in (search(tables, limits, batch, 3), greedy(tables, limits, batch)):
        assert found.lengths[:, 0].tolist() == alive
        none = found.lengths == 0
        assert (found.scores[none] == np.float32(NEG_INF)).all()
        assert (found.log_probabilities[none] == np.float32(NEG_INF)).all()


@each_dead_end
def test_dead_end_has_no_tokens(tables, rules):
    for found in (search(tables, [4], [rules], 3), greedy(tables, [4], [rules])):
        assert (found.ids == SPECIAL.pad).all()


def test_a_minimum_beyond_the_limit_is_the_limit(tables):
    """The end token may come last, as the documentation says."""
    tables = PrefixTables(tables.tables + 15.0 * (np.arange(VOCABULARY) == SPECIAL.end), LENGTH)
    rules = [Rules(min_length=9), Rules(min_length=3)]
    for found in (search(tables, [3, 5], rules, 2), greedy(tables, [3, 5], rules)):
        assert found.lengths[:, 0].tolist() == [3, 3]
        assert (found.ids[:, 0, 2] == SPECIAL.end).all()


# One step


each_way = pytest.mark.parametrize("compiled", [False, True], ids="compiled={}".format)


def ranked(logits, count, constraints=Constraints(), ids=(), special=SPECIAL, compiled=False):
    """{token: log-probability} of those that may follow one hypothesis, in their order."""
    row = np.int32([[[*ids, *[special.pad] * 3]]])
    found = rank_next(
        *(ops.convert_to_tensor(np.float32([[logits]])), count, row, len(ids)),
        *(special, constraints, compiled),
    )
    values, tokens = (ops.convert_to_numpy(field)[0, 0] for field in found)
    return {
        int(token): float(value)
        for value, token in zip(values, tokens, strict=True)
        if value > NEG_INF / 2
    }


@pytest.mark.parametrize(
    "constraints",
    [Constraints(), Constraints(excluded=(3,)), Constraints(min_lengths=np.int32([5]))],
    ids=["special", "excluded", "end too early"],
)
def test_excluded_tokens_take_no_probability_from_the_others(constraints):
    """Six equal logits: ln 1/6 each, whatever is left of the six."""
    left = {2, 3, 4, 5} - set(constraints.excluded)
    if constraints.min_lengths is not None:
        left -= {SPECIAL.end}
    assert ranked(np.zeros(6), 6, constraints) == {
        token: pytest.approx(np.log(1 / 6), rel=1e-6) for token in left
    }


@each_way
def test_tokens_are_ranked_by_the_models_log_probability(compiled):
    logits = [1.0, 0.0, 3.0, 2.5, -1.0, 4.0]
    log_p = reference_search.log_softmax(logits)
    expected = {token: pytest.approx(log_p[token], rel=1e-6) for token in (5, 2, 3, 4)}
    found = ranked(logits, 6, compiled=compiled)
    assert found == expected
    assert list(found) == [5, 2, 3, 4]


@pytest.mark.parametrize("fields", [{}, {"excluded": (9,)}], ids=["plain", "constrained"])
def test_at_least_as_many_are_ranked_as_asked_for(fields):
    """Though padding, start and end are the likeliest and none of them may follow."""
    logits = np.arange(20.0)[::-1]
    constraints = Constraints(min_lengths=ops.convert_to_tensor(np.int32([5])), **fields)
    assert list(ranked(logits, 2, constraints))[:2] == [3, 4]


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["plain", "constrained"])
def test_no_more_are_ranked_than_there_are(fields):
    found = rank_next(
        ops.zeros((2, 3, 6)), 9, ops.zeros((2, 3, 4), "int32"), 0, SPECIAL, Constraints(**fields)
    )
    assert found.tokens.shape == found.log_probabilities.shape == (2, 3, 6)


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["plain", "constrained"])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@each_way
def test_log_probability_is_never_positive(fields, size, compiled):
    logits = size * np.random.default_rng(25).normal(size=(20, 5, 300)).astype("float32")
    ids = ops.zeros((20, 5, 4), "int32")
    constraints = Constraints(**fields)
    found = rank_next(ops.convert_to_tensor(logits), 300, ids, 0, SPECIAL, constraints, compiled)
    log_p = ops.convert_to_numpy(found.log_probabilities)
    assert log_p.max() <= 0
    assert np.isfinite(log_p).all()


@pytest.mark.parametrize("size", [7, 640], ids="vocabulary={}".format)
@pytest.mark.parametrize(
    "constraints",
    [Constraints(), Constraints(excluded=(4,)), Constraints(min_lengths=np.int32([5, 1, 5]))],
    ids=["special", "excluded", "end too early"],
)
@each_way
def test_extensions_of_a_sentence_are_ranked_together(constraints, size, compiled):
    """Against a sort of all of them; logits and totals are few numbers, so many are equal."""
    random = np.random.default_rng(26)
    logits = random.integers(0, 4, (3, 4, size)).astype("float32")
    logits[..., SPECIAL] = 9  # the likeliest
    totals = -random.integers(0, 3, (3, 4)).astype("float32")
    log_p = np.apply_along_axis(reference_search.log_softmax, -1, logits) + totals[..., None]
    log_p[..., [SPECIAL.pad, SPECIAL.start, *constraints.excluded]] = -np.inf
    if constraints.min_lengths is not None:
        log_p[constraints.min_lengths > 1, :, SPECIAL.end] = -np.inf
    # To six digits: what is equal but for rounding here comes in the order of hypothesis and token.
    expected = np.argsort(-log_p.reshape(3, -1).round(6), axis=-1, kind="stable")[:, :8]

    ids = ops.zeros((3, 4, 4), "int32")
    ranked, parents = rank_together(
        *(ops.convert_to_tensor(logits), ops.convert_to_tensor(totals), 8),
        *(ids, 0, SPECIAL, constraints, compiled),
    )
    values, tokens, parents = map(ops.convert_to_numpy, (*ranked, parents))
    for sentence in range(3):
        may_follow = values[sentence] > NEG_INF / 2
        places = parents[sentence] * size + tokens[sentence]
        np.testing.assert_array_equal(places[may_follow][:8], expected[sentence])
        np.testing.assert_allclose(
            values[sentence][may_follow][:8],
            log_p[sentence].ravel()[expected[sentence]],
            rtol=1e-6,
        )


@pytest.mark.parametrize("fields", [{}, {"excluded": (3,)}], ids=["plain", "constrained"])
def test_no_more_are_ranked_together_than_there_are(fields):
    ranked, parents = rank_together(
        *(ops.zeros((2, 3, 6)), ops.zeros((2, 3)), 99, ops.zeros((2, 3, 4), "int32"), 0),
        *(SPECIAL, Constraints(**fields)),
    )
    assert ranked.tokens.shape == ranked.log_probabilities.shape == parents.shape == (2, 18)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ngrams_by_hand(size):
    """After 3 4 5 3 4: no token of it; none that follows a 4, which is 5; none after 3 4: 5."""
    allowed = ranked(np.zeros(7), 7, Constraints(no_repeat_ngram_size=size), ids=(3, 4, 5, 3, 4))
    assert set(allowed) == ({2, 6} if size == 1 else {2, 3, 4, 6})


@pytest.mark.parametrize("size", [2, 3, 6])
def test_nothing_repeats_before_there_is_an_ngram(size):
    """Padding beyond the tokens, and the token before the first one, are no n-gram."""
    constraints = Constraints(no_repeat_ngram_size=size)
    for ids in [(), (3,)]:
        assert set(ranked(np.zeros(5), 5, constraints, ids)) == {2, 3, 4}
        # Padding that may be mistaken for a token.
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
def test_bad_constraints_are_named(options, message):
    with pytest.raises(InputError) as error:
        Constraints(**options)
    assert str(error.value) == message
