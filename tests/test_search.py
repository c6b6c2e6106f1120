"""A model and a configuration: what a search may choose, what it gives, what changes nothing."""

from fractions import Fraction

import numpy as np
import pytest
import reference
import tensorflow as tf
from reference_search import hypotheses_of, log_softmax, repeats

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.models.incremental_decoder import IncrementalDecoder
from tf_transformer.models.transformer import Transformer
from tf_transformer.search import Search, longest, random_numbers, score_pairs, shortest
from tf_transformer.sequences import shift_right
from tf_transformer.special_ids import BOS_ID, EOS_ID, PAD_ID

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
    """A small random model whose end token has this much more than a random logit.

    The last norm gives every state a 1 in its first place, and there all tokens but the end have
    a 0 in the output matrix.
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
    """Gives the end token no chance, so that only the limit ends a translation."""
    return make_model(end_logit=-1e4)


@pytest.fixture(scope="module")
def ending_at_once():
    return make_model(end_logit=1e2)


def batch_of(rows, columns=0) -> np.ndarray:
    """Rows of ids, padded to the longest or to so many columns."""
    columns = max(columns, *map(len, rows))
    return np.int32([[*row, *[PAD_ID] * (columns - len(row))] for row in rows])


def search(model, source, prefix=None, excluded=(), **options):
    options = {"max_extra_length": 4} | options
    run = Search(model, DecodeConfig(**options), excluded)
    found = run(tf.constant(source), None if prefix is None else tf.constant(prefix))
    return type(found)(*map(np.asarray, found))


def assert_same(found, others, columns=None):
    """Ids and lengths are equal, numbers to 1e-4."""
    columns = min(found.ids.shape[2], others.ids.shape[2])
    assert not found.ids[:, :, columns:].any()
    assert not others.ids[:, :, columns:].any()
    np.testing.assert_array_equal(found.ids[:, :, :columns], others.ids[:, :, :columns])
    np.testing.assert_array_equal(found.lengths, others.lengths)
    for ours, theirs in zip(found[2:], others[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def rows_of(found, rows):
    return type(found)(*(field[rows] for field in found))


# Lengths. Sources have 4 tokens and 2.

TWO = batch_of([[5, 6, 7, EOS_ID], [5, EOS_ID]])


@pytest.mark.parametrize(
    ("beam_size", "position", "lengths"),
    [(1, "sinusoidal", [54, 52]), (2, "learned", [40, 40])],
)
def test_translations_have_at_most_fifty_tokens_more_than_the_source(beam_size, position, lengths):
    """Section 6.1, for each sentence by itself; a learned table may end before that."""
    model = make_model(end_logit=-1e4, position=position, max_length=40)
    found = search(model, TWO, beam_size=beam_size, max_extra_length=50)
    assert found.lengths[:, 0].tolist() == lengths


LIMITS = [
    ({"max_extra_length": 3}, [7, 5]),
    ({"max_extra_length": 0}, [4, 2]),
    ({"max_extra_length": 1, "max_length_ratio": 1.5}, [7, 4]),
    ({"max_extra_length": 0, "max_length_ratio": 0.4}, [1, 1]),  # never none at all
    ({"max_extra_length": 3, "max_length": 6}, [6, 5]),
    ({"max_extra_length": 3, "max_length": 1}, [1, 1]),
]


@pytest.mark.parametrize(("options", "lengths"), LIMITS)
def test_limits_are_those_of_the_configuration(never_ending, options, lengths):
    found = search(never_ending, TWO, beam_size=1, **options)
    assert found.lengths[:, 0].tolist() == lengths


@pytest.mark.parametrize("kind", [{"beam_size": 2}, {"sampling": True}], ids=["beam", "sampling"])
def test_limits_hold_for_every_search(never_ending, kind):
    found = search(never_ending, TWO, max_extra_length=1, max_length_ratio=1.5, **kind)
    assert found.lengths[:, 0].tolist() == [7, 4]


MINIMA = [
    ({}, [1, 1]),
    ({"min_length": 3}, [3, 3]),
    ({"min_length_ratio": 1.0}, [4, 2]),
    ({"min_length_ratio": 0.6}, [3, 2]),  # of 2.4 and 1.2, rounded up
    ({"min_length_ratio": 1.0, "min_length": 3}, [4, 3]),
    ({"min_length": 5, "max_extra_length": 0}, [4, 2]),  # no more than the limit
]


@pytest.mark.parametrize(("options", "lengths"), MINIMA)
def test_minima_are_those_of_the_configuration(ending_at_once, options, lengths):
    for kind in ({"beam_size": 1}, {"beam_size": 2}, {"sampling": True}):
        found = search(ending_at_once, TWO, **options, **kind)
        assert found.lengths[:, 0].tolist() == lengths
        last = found.ids[np.arange(2), 0, np.array(lengths) - 1]
        assert last.tolist() == [EOS_ID, EOS_ID]  # also where the limit is reached


def test_lengths_by_a_ratio_are_those_of_exact_arithmetic():
    """100 · 0.53 is 53, and 50 · 0.3 is 15, though neither ratio is exact in binary."""
    lengths = np.arange(1, 513, dtype=np.int32)
    for ratio in ("0.1", "0.3", "0.53", "0.7", "1.1", "1.4", "2.4", "3.3"):
        exact = [Fraction(ratio) * int(length) for length in lengths]
        config = DecodeConfig(
            max_extra_length=0, max_length_ratio=float(ratio), min_length_ratio=float(ratio)
        )
        most = np.asarray(longest(lengths, config, ModelConfig()))
        assert most.tolist() == [max(1, int(number)) for number in exact]
        fewest = np.asarray(shortest(lengths, np.full_like(lengths, 10_000), config))
        assert fewest.tolist() == [-int(-number // 1) for number in exact]


def count_steps(monkeypatch) -> list:
    taken = []
    call = IncrementalDecoder.__call__

    def counting(self, ids, state, index):
        taken.append(index)
        return call(self, ids, state, index)

    monkeypatch.setattr(IncrementalDecoder, "__call__", counting)
    return taken


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"sampling": True}])
def test_empty_rows_cost_one_step(never_ending, monkeypatch, options):
    """As a graph gets them: the end token alone, or nothing but padding."""
    taken = count_steps(monkeypatch)
    empty = np.int32([[EOS_ID, 0, 0, 0], [0, 0, 0, 0]])
    found = search(never_ending, empty, min_length=3, **options)
    assert len(taken) == 1
    assert np.isfinite(found.scores).all()
    # And a whole batch no more than its longest sentence.
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
    "sampling from few": {"sampling": True, "temperature": 0.5, "top_k": 4, "top_p": 0.9},
}

each_config = pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)


def assert_scored_by_the_model(model, source, found, alpha):
    """By running it over the whole of what was found."""
    for n in range(found.ids.shape[1]):
        expected = score_pairs(model, source, tf.constant(found.ids[:, n]), alpha)
        real = found.lengths[:, n] > 0
        assert real.any()
        np.testing.assert_allclose(
            found.log_probabilities[real, n], expected.log_probability[real], rtol=0, atol=1e-4
        )
        np.testing.assert_allclose(found.scores[real, n], expected.score[real], rtol=0, atol=1e-4)


@each_config
def test_score_is_what_the_model_gives_the_returned_ids(model, options):
    source = batch_of(SENTENCES)
    found = search(model, source, **options)
    alpha = options.get("length_penalty", 0.6)
    assert_scored_by_the_model(model, source, found, alpha)


PREFIX = batch_of([[8, 8, 8, 3], [6, 7], [], [9], [3, 4, 5], [4]])


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 2}])
def test_prefix_starts_the_translation_and_counts_in_its_score(model, options):
    source = batch_of(SENTENCES)
    found = search(model, source, PREFIX, **options)
    for row, prefix in enumerate(PREFIX):
        for hypothesis in hypotheses_of(found, row):
            length = int((prefix != PAD_ID).sum())
            assert hypothesis.ids[:length] == tuple(prefix[:length])
    assert_scored_by_the_model(model, source, found, 0.6)


def test_prefix_of_nothing_is_none(model):
    source = batch_of(SENTENCES)
    without = search(model, source)
    for columns in (0, 2):
        assert_same(search(model, source, np.zeros((6, columns), np.int32)), without)


def test_prefix_has_room_and_a_token_more(never_ending):
    """Whatever the limit is: here 2 tokens for the first sentence, 4 for the second."""
    source, prefix = batch_of([[5, EOS_ID], [5, 6, 7, EOS_ID]]), np.int32([[3, 4, 5], [6, 0, 0]])
    found = search(never_ending, source, prefix, beam_size=2, max_extra_length=0)
    assert found.lengths[:, 0].tolist() == [4, 4]
    assert found.ids[0, 0, :3].tolist() == [3, 4, 5]
    assert found.ids[1, 0, 0] == 6


def test_prefix_is_cut_where_the_learned_positions_end():
    model = make_model(end_logit=-1e4, position="learned", max_length=8)
    source = batch_of([[5, 6, EOS_ID], [5, EOS_ID]])
    for length in (7, 8, 11):
        found = search(model, source, batch_of([[3] * length, [4, 4]]), beam_size=1)
        assert found.lengths[:, 0].tolist() == [8, 6]
        assert (found.ids[0, 0, :7] == 3).all()


def test_score_of_a_pair_by_hand(model):
    """Sentence by sentence without padding, and the softmax in NumPy."""
    targets = [[5, 9, EOS_ID], [EOS_ID], [3, 4, 6, 7]]
    found = score_pairs(model, batch_of(SENTENCES[:3]), batch_of(targets), alpha=1.0)
    for row, target in enumerate(targets):
        logits = reference.transformer(model, np.array(SENTENCES[row]), [BOS_ID, *target[:-1]])
        expected = sum(log_softmax(logits[n])[token] for n, token in enumerate(target))
        np.testing.assert_allclose(found.log_probability[row], expected, rtol=0, atol=1e-4)
        score = expected * 6 / (5 + len(target))
        np.testing.assert_allclose(found.score[row], score, rtol=0, atol=1e-4)


def test_coverage_penalty_is_that_of_the_attention_to_the_source(model):
    """β Σ ln(min(attention, 1)) with what `cross_attention_weights` gives, heads averaged."""
    source, beta = batch_of(SENTENCES), 0.3
    found = search(model, source, beam_size=4, num_hypotheses=4, coverage_penalty=beta)
    for row, sentence in enumerate(SENTENCES):
        for hypothesis in hypotheses_of(found, row):
            shifted = np.int32([[BOS_ID, *hypothesis.ids[:-1]]])
            weights = model.cross_attention_weights(np.int32([sentence]), shifted)[-1]
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


# Which hypotheses


def test_beam_of_one_is_greedy_search(model):
    """A coverage penalty of next to nothing makes a beam search of what would be greedy."""
    source = batch_of(SENTENCES)
    for options in ({}, {"min_length": 3}, {"no_repeat_ngram_size": 2}):
        greedy = search(model, source, beam_size=1, **options)
        beam = search(model, source, beam_size=1, coverage_penalty=1e-9, **options)
        assert_same(beam, greedy)


def test_wider_beam_finds_no_worse_on_the_whole(model):
    source = batch_of(SENTENCES)
    narrow, wide = (search(model, source, beam_size=size).scores.sum() for size in (1, 8))
    assert wide > narrow


def test_hypotheses_are_sorted_distinct_and_complete(model):
    found = search(model, batch_of(SENTENCES), beam_size=6, num_hypotheses=6)
    assert (np.diff(found.scores, axis=1) <= 0).all()
    for row, sentence in enumerate(SENTENCES):
        every = [hypothesis.ids for hypothesis in hypotheses_of(found, row)]
        assert len(set(every)) == len(every) == 6
        assert all(ids[-1] == EOS_ID or len(ids) == len(sentence) + 4 for ids in every)


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 4}, {"sampling": True}]
)
def test_excluded_ids_padding_and_start_are_in_no_translation(model, options):
    source = batch_of(SENTENCES)
    usual = set(search(model, source, **options).ids.ravel().tolist())
    excluded = tuple(sorted(usual - {PAD_ID, EOS_ID}))[:3]
    assert len(excluded) == 3
    left = set(search(model, source, excluded=excluded, **options).ids.ravel().tolist())
    assert not left & {*excluded, BOS_ID}


@pytest.mark.parametrize("size", [1, 2])
def test_no_ngram_comes_twice(never_ending, size):
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


# What changes nothing

GRAPHS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "num_hypotheses": 2},
    "constrained": {
        **{"beam_size": 3, "min_length_ratio": 0.7, "no_repeat_ngram_size": 2},
        **{"repetition_penalty": 1.2, "coverage_penalty": 0.4},
    },
    "sampling": {"sampling": True, "num_hypotheses": 3, "seed": 5},
}


@pytest.mark.parametrize("options", GRAPHS.values(), ids=GRAPHS)
def test_a_sentence_is_translated_the_same_whatever_its_batch(model, options):
    """Alone, in another order, with padding that nothing needs, and in a graph."""
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


@pytest.mark.parametrize(
    ("rows", "columns", "expected"), [(1, 4, True), (1, 5, False), (2, 4, False)]
)
def test_a_short_sentence_by_itself_is_searched_in_a_way_of_its_own(
    model, monkeypatch, rows, columns, expected
):
    """Short: of no more tokens than a head is large, which is 4 here."""
    ways = []

    def recording(*arguments, alone, **options):
        ways.append(alone)
        return IncrementalDecoder(*arguments, alone=alone, **options)

    monkeypatch.setattr("tf_transformer.search.IncrementalDecoder", recording)
    search(model, batch_of([[9, 10, EOS_ID]] * rows, columns))
    assert ways == [expected]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(GRAPHS["greedy"], id="greedy", marks=pytest.mark.slow),
        pytest.param(GRAPHS["beam"], id="beam", marks=pytest.mark.slow),
        pytest.param(GRAPHS["constrained"], id="constrained"),
        pytest.param(GRAPHS["sampling"], id="sampling"),
    ],
)
def test_compiled_by_xla_translations_are_the_same(model, options):
    run = Search(model, DecodeConfig(max_extra_length=4, **options), fixed_size=True)
    ids = tf.TensorSpec((None, None), tf.int32)
    compiled = tf.function(run.__call__, [ids], jit_compile=True, autograph=False)
    together = search(model, batch_of(SENTENCES), **options)
    for rows in (range(len(SENTENCES)), [1]):  # the second has few tokens
        found = compiled(batch_of([SENTENCES[row] for row in rows]))
        assert_same(type(found)(*map(np.asarray, found)), rows_of(together, [*rows]))


@pytest.mark.parametrize("options", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("rows", [[0, 1, 2], [1]], ids=["several", "alone"])
def test_the_state_of_a_search_of_fixed_size_grows_with_it(never_ending, options, rows):
    """Translations that take all the room there is, in a state that starts with a third of it."""
    source = batch_of([SENTENCES[row] for row in rows])
    run = Search(never_ending, DecodeConfig(max_extra_length=7, **options), fixed_size=True)
    found = run(tf.constant(source))
    expected = search(never_ending, source, max_extra_length=7, **options)
    assert (np.asarray(expected.lengths)[:, 0] > source.shape[1]).all()
    assert_same(type(found)(*map(np.asarray, found)), expected)


# Sampling


def test_equal_seeds_draw_equal_translations_and_others_draw_others(model):
    source = batch_of(SENTENCES)
    options = {"sampling": True, "num_hypotheses": 3}
    first, again, other = (search(model, source, seed=seed, **options) for seed in (1, 1, 2))
    assert_same(again, first)
    assert (other.ids[:, :, :3] != first.ids[:, :, :3]).mean() > 0.3


def test_hypotheses_of_a_sentence_and_sentences_draw_different_numbers():
    source = batch_of(SENTENCES)
    numbers = np.asarray(random_numbers(source, 4, 50, seed=1))
    assert numbers.shape == (6, 4, 50)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert len(np.unique(numbers)) > 0.99 * numbers.size
    # Uniform: mean 1/2 and variance 1/12, to six standard errors of 1,200 numbers.
    assert abs(numbers.mean() - 1 / 2) < 6 / np.sqrt(12 * numbers.size)
    assert abs(numbers.var() - 1 / 12) < 6 / np.sqrt(180 * numbers.size)


def test_random_numbers_depend_on_the_sentence_and_the_seed_and_on_nothing_else():
    source = batch_of(SENTENCES)
    numbers = np.asarray(random_numbers(source, 3, 9, seed=4))
    order = [3, 0, 5]
    others = random_numbers(batch_of([SENTENCES[row] for row in order], columns=20), 3, 9, seed=4)
    np.testing.assert_array_equal(others, numbers[order])
    # A longer search draws the same first numbers.
    longer = np.asarray(random_numbers(source, 3, 40, seed=4))
    np.testing.assert_array_equal(longer[:, :, :9], numbers)
    assert (np.asarray(random_numbers(source, 3, 9, seed=5)) != numbers).all()


def test_sentences_of_the_same_ids_in_another_order_are_told_apart():
    one, other = (random_numbers(np.int32([ids]), 1, 5, seed=0) for ids in ([5, 6, 2], [6, 5, 2]))
    assert (np.asarray(one) != np.asarray(other)).all()


def test_neighbouring_numbers_have_nothing_to_do_with_each_other():
    """From step to step, hypothesis to hypothesis, sentence to sentence, and seed to seed."""
    sentences = np.int32([[5 + n, 2] for n in range(60)])
    numbers, of_next_seed = (np.asarray(random_numbers(sentences, 60, 60, seed)) for seed in (0, 1))
    around_0 = numbers - 1 / 2
    pairs = [(np.delete(around_0, 0, axis), np.delete(around_0, -1, axis)) for axis in range(3)]
    for one, other in [*pairs, (around_0, of_next_seed - 1 / 2)]:
        assert abs((one * other).mean() * 12) < 5 / np.sqrt(one.size)  # in standard errors
    counts = np.histogram(numbers, 1000, (0, 1))[0]
    expected = numbers.size / 1000
    chi_squared = ((counts - expected) ** 2 / expected).sum()  # mean 999, variance 2 · 999
    assert abs(chi_squared - 999) < 5 * np.sqrt(2 * 999)


def test_compiled_by_xla_random_numbers_are_the_same():
    source = tf.constant(batch_of(SENTENCES))
    compiled = tf.function(lambda ids: random_numbers(ids, 3, 9, seed=-1), jit_compile=True)
    np.testing.assert_array_equal(compiled(source), random_numbers(source, 3, 9, seed=-1))


# Attention


def test_attention_to_the_source_sums_to_one_and_leaves_padding_out(model):
    source = batch_of(SENTENCES)
    target = search(model, source, beam_size=2).ids[:, 0]
    (weights,) = model.cross_attention_weights(source, shift_right(tf.constant(target)))
    weights = np.asarray(weights)  # (B, H, T, S)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    padding = np.broadcast_to((source == PAD_ID)[:, None, None], weights.shape)
    assert padding.any()
    assert not weights[padding].any()
    assert (weights[~padding] > 0).all()


def test_a_source_of_a_thousand_tokens_is_searched_like_any_other(model):
    source = np.random.default_rng(7).integers(3, 11, (1, 1000)).astype(np.int32)
    source[0, -1] = EOS_ID
    padded = np.pad(source, [(0, 0), (0, 24)])
    for beam_size in (1, 4):
        alone, other = (
            search(model, s, beam_size=beam_size, max_length=7) for s in (source, padded)
        )
        assert alone.lengths[0, 0] <= 7
        np.testing.assert_array_equal(other.ids, alone.ids)
        np.testing.assert_allclose(other.scores, alone.scores, rtol=0, atol=1e-4)
