"""Searches of a small model: lengths, scores, constraints, and independence of the batch."""

from fractions import Fraction

import numpy as np
import pytest
import reference
import tensorflow as tf
from reference_search import hypotheses_of, log_softmax, repeats

from tf_transformer import kernels
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.decoding import LengthPenalty
from tf_transformer.inference.search import (
    Search,
    max_target_lengths,
    min_target_lengths,
    random_numbers,
    score_pairs,
)
from tf_transformer.models.cached_decoder import CachedDecoder
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID

VOCABULARY = 13
SENTENCES = [
    [5, 6, 7, 8, EOS_ID],
    [9, 10, EOS_ID],
    [4, EOS_ID],
    [12, 11, 10, 9, 8, 7, EOS_ID],
    [7, 7, 7, EOS_ID],
    [10, 9, EOS_ID],
]


def make_model(end_logit=0.0, **changes):
    """A small random model that adds 3 · `end_logit` to the logit of the end token.

    The last norm sets the first number of every state to 1, which the output matrix multiplies
    by 0 for all tokens but the end.
    """
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 9, "num_heads": 2, "tie_embeddings": "none"}
    model = Transformer(VOCABULARY, ModelConfig(**sizes | changes))
    model.build()
    reference.randomize(model, seed=8)
    norm = model.decoder.layers[-1].feed_forward_residual.norm
    first = np.arange(8) == 0
    norm.gamma.assign(np.where(first, 0.0, norm.gamma))
    norm.beta.assign(np.where(first, 1.0, norm.beta))
    matrix = np.array(model.output_embedding.embeddings)
    matrix[:, 0] = 0.0
    matrix[EOS_ID, 0] = end_logit
    model.output_embedding.embeddings.assign(3.0 * matrix)
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def never_ending():
    """A model whose translations end only at the limit."""
    return make_model(end_logit=-1e4)


@pytest.fixture(scope="module")
def ending_at_once():
    """A model whose translations are the end token, if it is allowed."""
    return make_model(end_logit=1e2)


def batch_of(rows, columns=0) -> np.ndarray:
    """Rows of ids, padded to the longest, or to `columns`."""
    columns = max(columns, *map(len, rows))
    return np.int32([[*row, *[PAD_ID] * (columns - len(row))] for row in rows])


def search(model, source, prefix=None, excluded=(), **options):
    options = {"max_extra_length": 4} | options
    run = Search(model, DecodeConfig(**options), excluded)
    found = run(tf.constant(source), {} if prefix is None else {"prefix": tf.constant(prefix)})
    return type(found)(*map(np.asarray, found))


def assert_same(found, expected):
    """Ids up to padding and lengths are equal, log-probabilities and scores to 1e-4."""
    columns = min(found.ids.shape[2], expected.ids.shape[2])
    assert not found.ids[:, :, columns:].any()
    assert not expected.ids[:, :, columns:].any()
    np.testing.assert_array_equal(found.ids[:, :, :columns], expected.ids[:, :, :columns])
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    for one, other in zip(found[2:], expected[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


def rows_of(found, rows):
    return type(found)(*(field[rows] for field in found))


# Lengths

FOUR_AND_TWO = batch_of([[5, 6, 7, EOS_ID], [5, EOS_ID]])


@pytest.mark.parametrize(
    ("beam_size", "position", "lengths"),
    [(1, "sinusoidal", [54, 52]), (2, "learned", [40, 40])],
)
def test_translations_have_at_most_fifty_tokens_more_than_the_source(beam_size, position, lengths):
    """Section 6.1, per sentence. A table of learned positions may be shorter."""
    model = make_model(end_logit=-1e4, position=position, max_length=40)
    found = search(model, FOUR_AND_TWO, beam_size=beam_size, max_extra_length=50)
    assert found.lengths[:, 0].tolist() == lengths


LIMITS = [
    ({"max_extra_length": 3}, [7, 5]),
    ({"max_extra_length": 0}, [4, 2]),
    ({"max_extra_length": 1, "max_length_ratio": 1.5}, [7, 4]),
    ({"max_extra_length": 0, "max_length_ratio": 0.4}, [1, 1]),  # at least one token
    ({"max_extra_length": 3, "max_length": 6}, [6, 5]),
    ({"max_extra_length": 3, "max_length": 1}, [1, 1]),
]


@pytest.mark.parametrize(("options", "lengths"), LIMITS)
def test_config_sets_the_largest_lengths(never_ending, options, lengths):
    found = search(never_ending, FOUR_AND_TWO, beam_size=1, **options)
    assert found.lengths[:, 0].tolist() == lengths


@pytest.mark.parametrize("kind", [{"beam_size": 2}, {"sampling": True}], ids=["beam", "sampling"])
def test_limits_apply_to_every_search(never_ending, kind):
    found = search(never_ending, FOUR_AND_TWO, max_extra_length=1, max_length_ratio=1.5, **kind)
    assert found.lengths[:, 0].tolist() == [7, 4]


MINIMA = [
    ({}, [1, 1]),
    ({"min_length": 1}, [2, 2]),  # and the end token
    ({"min_length": 3}, [4, 4]),
    ({"min_length_ratio": 1.0}, [4, 2]),
    ({"min_length_ratio": 0.6}, [3, 2]),  # 1.8 and 0.6 tokens of text, rounded up
    ({"min_length_ratio": 1.0, "min_length": 2}, [4, 3]),
    ({"min_length": 5, "max_extra_length": 0}, [4, 2]),  # at most the limit
]


@pytest.mark.parametrize(("options", "lengths"), MINIMA)
def test_config_sets_the_smallest_lengths(ending_at_once, options, lengths):
    for kind in ({"beam_size": 1}, {"beam_size": 2}, {"sampling": True}):
        found = search(ending_at_once, FOUR_AND_TWO, **options, **kind)
        assert found.lengths[:, 0].tolist() == lengths
        last = found.ids[np.arange(2), 0, np.array(lengths) - 1]
        assert last.tolist() == [EOS_ID, EOS_ID]  # at the limit, too


def test_ratios_of_lengths_are_rounded_exactly():
    """100 · 0.53 is 53, and 50 · 0.3 is 15, although neither ratio is exact in binary."""
    lengths = np.arange(1, 513, dtype=np.int32)
    for ratio in ("0.1", "0.3", "0.53", "0.7", "1.1", "1.4", "2.4", "3.3"):
        exact = [Fraction(ratio) * int(length) for length in lengths]
        config = DecodeConfig(
            max_extra_length=0, max_length_ratio=float(ratio), min_length_ratio=float(ratio)
        )
        most = np.asarray(max_target_lengths(lengths, config))
        assert most.tolist() == [max(1, int(number)) for number in exact]
        fewest = np.asarray(min_target_lengths(lengths, np.full_like(lengths, 10_000), config))
        exact = [Fraction(ratio) * int(length - 1) for length in lengths]  # without the end
        assert fewest.tolist() == [1 - int(-number // 1) for number in exact]


def count_steps(monkeypatch) -> list:
    taken = []
    call = CachedDecoder.__call__

    def counting(self, ids, state, index):
        taken.append(index)
        return call(self, ids, state, index)

    monkeypatch.setattr(CachedDecoder, "__call__", counting)
    return taken


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"sampling": True}])
def test_empty_rows_cost_one_step(never_ending, monkeypatch, options):
    """Rows of the end token alone, or of padding, as an exported graph receives them."""
    taken = count_steps(monkeypatch)
    empty = np.int32([[EOS_ID, 0, 0, 0], [0, 0, 0, 0]])
    found = search(never_ending, empty, min_length=3, **options)
    assert len(taken) == 1
    assert np.isfinite(found.scores).all()
    # A batch takes as many steps as its longest translation.
    taken.clear()
    together = search(never_ending, np.int32([[EOS_ID, 0], [6, EOS_ID]]), **options)
    assert together.lengths[:, 0].tolist() == [1, 6]
    assert len(taken) == 6


# Scores

CONFIGS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "num_hypotheses": 3},
    "no penalty": {"beam_size": 4, "length_penalty": 0.0},
    "min length": {"beam_size": 3, "min_length": 4},
    "trigrams": {"beam_size": 3, "no_repeat_ngram_size": 3},
    "bigrams, greedy": {"beam_size": 1, "no_repeat_ngram_size": 2},
    "sampling": {"sampling": True, "num_hypotheses": 3},
    "sampling, truncated": {"sampling": True, "temperature": 0.5, "top_k": 4, "top_p": 0.9},
}

each_config = pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)


def assert_scored_by_the_model(model, source, found, alpha):
    """Asserts that the scores are those of the whole translations, without a cache."""
    for n in range(found.ids.shape[1]):
        expected = score_pairs(model, source, tf.constant(found.ids[:, n]), LengthPenalty(alpha))
        real = found.lengths[:, n] > 0
        assert real.any()
        np.testing.assert_allclose(
            found.log_probabilities[real, n], expected.log_probability[real], rtol=0, atol=1e-4
        )
        np.testing.assert_allclose(found.scores[real, n], expected.score[real], rtol=0, atol=1e-4)


@each_config
def test_scores_are_the_models_for_the_returned_ids(model, options):
    source = batch_of(SENTENCES)
    found = search(model, source, **options)
    alpha = options.get("length_penalty", 0.6)
    assert_scored_by_the_model(model, source, found, alpha)


PREFIX = batch_of([[8, 8, 8, 3], [6, 7], [], [9], [3, 4, 5], [4]])


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 2}])
def test_prefix_starts_the_translation_and_its_score_counts(model, options):
    source = batch_of(SENTENCES)
    found = search(model, source, PREFIX, **options)
    for row, prefix in enumerate(PREFIX):
        for hypothesis in hypotheses_of(found, row):
            length = int((prefix != PAD_ID).sum())
            assert hypothesis.ids[:length] == tuple(prefix[:length])
    assert_scored_by_the_model(model, source, found, 0.6)


def test_empty_prefix_changes_nothing(model):
    source = batch_of(SENTENCES)
    without = search(model, source)
    for columns in (0, 2):
        assert_same(search(model, source, np.zeros((6, columns), np.int32)), without)


def test_limit_leaves_room_for_the_prefix_and_one_more_token(never_ending):
    """Without a prefix the limits are 2 and 4 tokens."""
    source, prefix = batch_of([[5, EOS_ID], [5, 6, 7, EOS_ID]]), np.int32([[3, 4, 5], [6, 0, 0]])
    found = search(never_ending, source, prefix, beam_size=2, max_extra_length=0)
    assert found.lengths[:, 0].tolist() == [4, 4]
    assert found.ids[0, 0, :3].tolist() == [3, 4, 5]
    assert found.ids[1, 0, 0] == 6


def test_prefix_is_cut_at_the_end_of_learned_positions():
    model = make_model(end_logit=-1e4, position="learned", max_length=8)
    source = batch_of([[5, 6, EOS_ID], [5, EOS_ID]])
    for length in (7, 8, 11):
        found = search(model, source, batch_of([[3] * length, [4, 4]]), beam_size=1)
        assert found.lengths[:, 0].tolist() == [8, 6]
        assert (found.ids[0, 0, :7] == 3).all()


def test_score_of_a_pair_by_hand(model):
    """Against the NumPy model, one pair at a time, without padding."""
    targets = [[5, 9, EOS_ID], [EOS_ID], [3, 4, 6, 7]]
    found = score_pairs(model, batch_of(SENTENCES[:3]), batch_of(targets), LengthPenalty(1.0))
    for row, target in enumerate(targets):
        logits = reference.forward(model, SENTENCES[row], [BOS_ID, *target[:-1]]).logits
        expected = sum(log_softmax(logits[n])[token] for n, token in enumerate(target))
        np.testing.assert_allclose(found.log_probability[row], expected, rtol=0, atol=1e-4)
        score = expected * 6 / (5 + len(target))
        np.testing.assert_allclose(found.score[row], score, rtol=0, atol=1e-4)


def test_coverage_penalty_equals_its_formula(model):
    """β Σ ln(min(attention, 1)) with the mean of the heads of the last layer's cross-attention."""
    source, beta = batch_of(SENTENCES), 0.3
    found = search(model, source, beam_size=4, num_hypotheses=4, coverage_penalty=beta)
    for row, sentence in enumerate(SENTENCES):
        for hypothesis in hypotheses_of(found, row):
            shifted = np.int32([[BOS_ID, *hypothesis.ids[:-1]]])
            weights = model.run((np.int32([sentence]), shifted)).cross_attention[-1]
            attention = np.asarray(weights)[0].mean(axis=0).sum(axis=0)
            penalty = beta * np.log(np.minimum(attention, 1.0)).sum()
            score = hypothesis.log_probability / ((5 + len(hypothesis.ids)) / 6) ** 0.6 + penalty
            np.testing.assert_allclose(hypothesis.score, score, rtol=0, atol=1e-4)


def test_coverage_penalty_can_prefer_another_translation(model):
    source = batch_of(SENTENCES)
    without, with_penalty = (
        search(model, source, beam_size=4, coverage_penalty=beta) for beta in (0.0, 5.0)
    )
    assert (without.ids != with_penalty.ids).any()


# Hypotheses


def test_beam_of_one_is_greedy_search(model):
    """A tiny coverage penalty selects beam search, which a beam of one would not."""
    source = batch_of(SENTENCES)
    for options in ({}, {"min_length": 3}, {"no_repeat_ngram_size": 2}):
        greedy = search(model, source, beam_size=1, **options)
        beam = search(model, source, beam_size=1, coverage_penalty=1e-9, **options)
        assert_same(beam, greedy)


def test_wider_beam_finds_better_scores_on_average(model):
    source = batch_of(SENTENCES)
    narrow, wide = (search(model, source, beam_size=size).scores.sum() for size in (1, 8))
    assert wide > narrow


def test_hypotheses_are_sorted_distinct_and_complete(model):
    found = search(model, batch_of(SENTENCES), beam_size=6, num_hypotheses=6)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for row, sentence in enumerate(SENTENCES):
        all_ids = [hypothesis.ids for hypothesis in hypotheses_of(found, row)]
        assert len(set(all_ids)) == len(all_ids) == 6
        assert all(ids[-1] == EOS_ID or len(ids) == len(sentence) + 4 for ids in all_ids)


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 4}, {"sampling": True}]
)
def test_no_translation_contains_excluded_ids_or_start(model, options):
    source = batch_of(SENTENCES)
    usual = set(search(model, source, **options).ids.ravel().tolist())
    excluded = tuple(sorted(usual - {PAD_ID, EOS_ID}))[:3]
    assert len(excluded) == 3
    remaining = set(search(model, source, excluded=excluded, **options).ids.ravel().tolist())
    assert not remaining & {*excluded, BOS_ID}


@pytest.mark.parametrize("size", [1, 2])
def test_no_ngram_occurs_twice(never_ending, size):
    for beam_size in (1, 3):
        options = {"beam_size": beam_size, "no_repeat_ngram_size": size}
        found = search(never_ending, batch_of(SENTENCES), **options)
        for row in range(len(SENTENCES)):
            for hypothesis in hypotheses_of(found, row):
                assert not repeats(hypothesis.ids, size)


def test_repetition_penalty_makes_repetition_rarer(never_ending):
    usual, penalized = (
        search(never_ending, batch_of(SENTENCES), beam_size=1, repetition_penalty=penalty).ids
        for penalty in (1.0, 4.0)
    )
    different = [sum(len(set(row.tolist())) for row in ids[:, 0]) for ids in (usual, penalized)]
    assert different[1] > different[0]


# Batches, graphs and layouts

GRAPHS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "num_hypotheses": 2},
    "constrained": {
        **{"beam_size": 3, "min_length_ratio": 0.7, "no_repeat_ngram_size": 2},
        **{"repetition_penalty": 1.2, "coverage_penalty": 0.4},
    },
    "sampling": {"sampling": True, "num_hypotheses": 3, "seed": 5},
}


def graphs(*quick: str):
    """Parametrizes a test by the options of `GRAPHS`; slow for those that are not named."""
    return pytest.mark.parametrize(
        "options",
        [
            pytest.param(options, id=name, marks=() if name in quick else pytest.mark.slow)
            for name, options in GRAPHS.items()
        ],
    )


def assert_independent_of_the_batch(model, options):
    """For single sentences, in another order, with more padding, and in a graph."""
    run = Search(model, DecodeConfig(max_extra_length=4, **options))
    ids = tf.TensorSpec((None, None), tf.int32)
    graph = tf.function(run.__call__, input_signature=[ids], autograph=False)

    def translate(rows, columns=0):
        found = graph(batch_of(rows, columns))
        return type(found)(*map(np.asarray, found))

    together = translate(SENTENCES)
    for row, sentence in enumerate(SENTENCES):
        assert_same(translate([sentence, sentence]), rows_of(together, [row, row]))
        assert_same(translate([sentence]), rows_of(together, [row]))
        assert_same(translate([sentence], columns=11), rows_of(together, [row]))
    order = np.random.default_rng(9).permutation(len(SENTENCES))
    assert_same(translate([SENTENCES[row] for row in order]), rows_of(together, order))
    assert_same(translate(SENTENCES, columns=12), together)
    assert_same(search(model, batch_of(SENTENCES), **options), together)


@graphs("beam", "constrained", "sampling")
def test_translations_do_not_depend_on_the_batch(model, options):
    assert_independent_of_the_batch(model, options)


@pytest.mark.parametrize(
    "architecture", ["bahdanau", pytest.param("luong", marks=pytest.mark.slow)]
)
def test_translations_of_recurrent_models_do_not_depend_on_the_batch(architecture):
    sizes = {"num_layers": 1, "d_model": 8, "num_heads": 2, "tie_embeddings": "none"}
    model = RecurrentModel(VOCABULARY, ModelConfig(architecture=architecture, **sizes))
    model.build()
    reference.randomize(model, seed=8)
    assert_independent_of_the_batch(model, GRAPHS["constrained"])


@graphs("constrained", "sampling")
def test_plain_kernels_find_the_same_translations(model, options):
    source = batch_of(SENTENCES)
    with kernels.use(kernels.PLAIN):
        plain = search(model, source, **options)
    assert_same(plain, search(model, source, **options))


def test_a_graph_of_a_known_size_finds_the_same_translations(model):
    run, source = Search(model, DecodeConfig(max_extra_length=4)), batch_of(SENTENCES)
    found = tf.function(run.__call__, autograph=False)(tf.constant(source))
    assert_same(type(found)(*map(np.asarray, found)), search(model, source))


@graphs("constrained")
def test_xla_finds_the_same_translations(model, options):
    run = Search(model, DecodeConfig(max_extra_length=4, **options), static_shapes=True)
    ids = tf.TensorSpec((None, None), tf.int32)
    compiled = tf.function(run.__call__, [ids], jit_compile=True, autograph=False)
    together = search(model, batch_of(SENTENCES), **options)
    for rows in (range(len(SENTENCES)), [1]):  # a batch, and a short sentence
        found = compiled(batch_of([SENTENCES[row] for row in rows]))
        assert_same(type(found)(*map(np.asarray, found)), rows_of(together, [*rows]))


@graphs("greedy", "constrained", "sampling")
@pytest.mark.parametrize(
    "rows",
    [pytest.param([0, 1, 2], id="batch"), pytest.param([1], id="single", marks=pytest.mark.slow)],
)
def test_static_state_grows_to_the_longest_translation(never_ending, options, rows):
    """Translations that fill a cache whose first capacity is a third of the last one."""
    source = batch_of([SENTENCES[row] for row in rows])
    run = Search(never_ending, DecodeConfig(max_extra_length=7, **options), static_shapes=True)
    found = run(tf.constant(source))
    expected = search(never_ending, source, max_extra_length=7, **options)
    assert (np.asarray(expected.lengths)[:, 0] > source.shape[1]).all()
    assert_same(type(found)(*map(np.asarray, found)), expected)


# Sampling


def test_equal_seeds_draw_equal_translations(model):
    source = batch_of(SENTENCES)
    options = {"sampling": True, "num_hypotheses": 3}
    first, again, other = (search(model, source, seed=seed, **options) for seed in (1, 1, 2))
    assert_same(again, first)
    assert (other.ids[:, :, :3] != first.ids[:, :, :3]).mean() > 0.3


def test_random_numbers_are_distinct_and_uniform():
    source = batch_of(SENTENCES)
    numbers = np.asarray(random_numbers(source, 4, 50, seed=1))
    assert numbers.shape == (6, 4, 50)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert len(np.unique(numbers)) > 0.99 * numbers.size
    # Mean 1/2 and variance 1/12, to six standard errors of 1,200 numbers.
    assert abs(numbers.mean() - 1 / 2) < 6 / np.sqrt(12 * numbers.size)
    assert abs(numbers.var() - 1 / 12) < 6 / np.sqrt(180 * numbers.size)


def test_random_numbers_depend_only_on_the_sentence_and_the_seed():
    source = batch_of(SENTENCES)
    numbers = np.asarray(random_numbers(source, 3, 9, seed=4))
    order = [3, 0, 5]
    others = random_numbers(batch_of([SENTENCES[row] for row in order], columns=20), 3, 9, seed=4)
    np.testing.assert_array_equal(others, numbers[order])
    # A longer search has the same first numbers.
    longer = np.asarray(random_numbers(source, 3, 40, seed=4))
    np.testing.assert_array_equal(longer[:, :, :9], numbers)
    assert (np.asarray(random_numbers(source, 3, 9, seed=5)) != numbers).all()


def test_random_numbers_depend_on_the_order_of_ids():
    one, other = (random_numbers(np.int32([ids]), 1, 5, seed=0) for ids in ([5, 6, 2], [6, 5, 2]))
    assert (np.asarray(one) != np.asarray(other)).all()


def test_neighbouring_random_numbers_are_uncorrelated():
    """Between steps, between hypotheses, between sentences, and between seeds."""
    sentences = np.int32([[5 + n, 2] for n in range(60)])
    numbers, other_seed = (np.asarray(random_numbers(sentences, 60, 60, seed)) for seed in (0, 1))
    centred = numbers - 1 / 2
    pairs = [(np.delete(centred, 0, axis), np.delete(centred, -1, axis)) for axis in range(3)]
    for one, other in [*pairs, (centred, other_seed - 1 / 2)]:
        assert abs((one * other).mean() * 12) < 5 / np.sqrt(one.size)  # in standard errors
    counts = np.histogram(numbers, 1000, (0, 1))[0]
    expected = numbers.size / 1000
    chi_squared = ((counts - expected) ** 2 / expected).sum()  # mean 999, variance 2 · 999
    assert abs(chi_squared - 999) < 5 * np.sqrt(2 * 999)


def test_xla_draws_the_same_random_numbers():
    source = tf.constant(batch_of(SENTENCES))
    compiled = tf.function(lambda ids: random_numbers(ids, 3, 9, seed=-1), jit_compile=True)
    np.testing.assert_array_equal(compiled(source), random_numbers(source, 3, 9, seed=-1))


# Attention


def test_cross_attention_sums_to_one_and_excludes_padding(model):
    source = batch_of(SENTENCES)
    target = search(model, source, beam_size=2).ids[:, 0]
    (weights,) = model.run((source, shift_right(tf.constant(target)))).cross_attention
    weights = np.asarray(weights)  # (B, H, T, S)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    padding = np.broadcast_to((source == PAD_ID)[:, None, None], weights.shape)
    assert padding.any()
    assert not weights[padding].any()
    assert (weights[~padding] > 0).all()


def test_padding_of_a_source_of_a_thousand_tokens_changes_nothing(model):
    source = np.random.default_rng(7).integers(3, 11, (1, 1000)).astype(np.int32)
    source[0, -1] = EOS_ID
    padded = np.pad(source, [(0, 0), (0, 24)])
    for beam_size in (1, 4):
        found, of_padded = (
            search(model, ids, beam_size=beam_size, max_length=7) for ids in (source, padded)
        )
        assert found.lengths[0, 0] <= 7
        assert_same(of_padded, found)
