"""The decoder one step at a time, against the model run over whole targets."""

import functools
from typing import NamedTuple

import keras
import numpy as np
import pytest
import reference
from keras import ops, tree

from tf_transformer.config import ModelConfig
from tf_transformer.decoding import StepOptions, StepState
from tf_transformer.decoding import cache as cache_module
from tf_transformer.decoding.coverage import coverage_penalty
from tf_transformer.layers import PositionEncoding, encodings
from tf_transformer.machine.thresholds import COMPACTION_INTERVAL
from tf_transformer.models.transformer import Transformer

VOCABULARY = 23
# Two sentences; 0 is padding, and only the second has some.
SOURCE = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
STEPS, CAPACITY = 4, 6
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned": {"position": "learned"},
    "odd heads": {"key_dim": 3, "value_dim": 5, "attention_bias": True},
    "untied": {"tie_embeddings": "none", "num_layers": 3},
    "another encoder": {
        **{"encoder_d_model": 20, "encoder_num_heads": 5, "num_encoder_layers": 1},
        **{"num_decoder_layers": 3, "tie_embeddings": "target"},
        **{"position": "opennmt", "source_end": False},
    },
    "grouped queries, rotary": {
        **{"num_heads": 6, "num_key_value_heads": 2, "key_dim": 4, "value_dim": 5},
        **{"position": "rotary", "activation": "swiglu", "normalization": "rms_norm"},
    },
}
# A window of 2 moves on after two steps.
PATTERNS = {
    "local, alibi": {"attention": "local", "attention_window": 2, "position": "alibi"},
    "strided, relative": {"attention": "strided", "attention_window": 2, "position": "relative"},
    "full encoder, linear decoder": {"decoder_attention": "linear"},
    "SSRU": {"decoder_attention": "ssru"},
    "SSRU, pre-norm, rotary": {
        **{"decoder_attention": "ssru", "norm_first": True, "position": "rotary", "key_dim": 4},
        "num_decoder_layers": 3,
    },
    "linear, rotary": {
        **{"attention": "linear", "position": "rotary", "key_dim": 4, "value_dim": 5},
        **{"num_heads": 4, "num_key_value_heads": 2},
    },
}
# XLA, and so JAX, has no tensors that grow.
ON_JAX = keras.backend.backend() == "jax"
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
each_layout = pytest.mark.parametrize(
    "static_shapes", [True] if ON_JAX else [True, False], ids="static_shapes={}".format
)
not_on_jax = pytest.mark.skipif(ON_JAX, reason="JAX has no tensors that grow")
only_tensorflow = pytest.mark.skipif(not ON_TENSORFLOW, reason="compiles with tf.function")


@functools.cache
def make_model(dtype="float32", **changes):
    """A small model with random gains and biases, the same in each call."""
    sizes = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2, "max_length": 13}
    model = Transformer(VOCABULARY, ModelConfig(**sizes | changes), dtype=dtype)
    model.build()
    return reference.randomize(model, seed=3)


def decoder(model, source, *sizes, **options):
    """The step function of a search with these `StepOptions`."""
    return model.step_function(ops.convert_to_tensor(source), StepOptions(*sizes, **options))


def random_tokens(*shape, seed=4):
    return np.random.default_rng(seed).integers(3, VOCABULARY, shape)


def whole_logits(model, source, targets):
    """Logits (B, W, T, V) of hypotheses (B, W, T), each decoded alone, all positions at once."""
    batch, beam, length = targets.shape
    sources = np.repeat(source, beam, axis=0)
    logits = model((sources, targets.reshape(-1, length)))
    return ops.convert_to_numpy(ops.cast(logits, "float32")).reshape(batch, beam, length, -1)


def stepped_logits(step, targets):
    """Logits (B, W, T, V) of hypotheses (B, W, T), token by token, and the last state."""
    state, logits = step.start, []
    for index in range(targets.shape[2]):
        one, state = take_step(step, targets[:, :, index], state, index)
        logits.append(one)
    return np.stack(logits, axis=2), state


def take_step(step, tokens, state, index):
    tokens = ops.convert_to_tensor(tokens.astype("int32"))
    logits, state = step(tokens, state, ops.convert_to_tensor(index))
    return ops.convert_to_numpy(ops.cast(logits, "float32")), state


def reordered(state: StepState, parents: np.ndarray) -> StepState:
    """The state with hypotheses replaced by their `parents` (B, W), as a beam does it."""
    rows = np.arange(len(parents))[:, None]
    per_hypothesis = tree.map_structure(
        lambda leaf: ops.convert_to_tensor(ops.convert_to_numpy(leaf)[rows, parents]),
        state.per_hypothesis,
    )
    return StepState(per_hypothesis, state.per_sentence)


class Searched(NamedTuple):
    """The record of a search with random tokens and random parents, step by step (T, ...)."""

    lines: np.ndarray  # (T, B, W, T): tokens of each hypothesis and its ancestors, then zeros
    logits: np.ndarray  # (T, B, W, V): its newest
    coverage: list  # (T, B, W, S)
    caches: list[list[np.ndarray]]  # keys and values of each layer

    def decoded_whole(self, model) -> np.ndarray:
        """The logits (T, B, W, V) of each line at its last token, decoded from scratch."""
        steps, batch, beam, _ = self.lines.shape
        lines = self.lines.transpose(1, 0, 2, 3).reshape(batch, -1, steps)  # (B, T·W, T)
        logits = whole_logits(model, SOURCE, lines).reshape(batch, steps, beam, steps, -1)
        return np.stack([logits[:, t, :, t] for t in range(steps)])

    def attended(self, model) -> np.ndarray:
        """The attention (T, B, W, S) that source tokens received, averaged over heads."""
        steps, batch, beam, _ = self.lines.shape
        lines = self.lines.transpose(1, 0, 2, 3).reshape(-1, steps)  # (B·T·W, T)
        sources = np.repeat(SOURCE, steps * beam, axis=0)
        weights = ops.convert_to_numpy(model.run((sources, lines)).cross_attention[-1])
        weights = weights.mean(axis=1).cumsum(axis=1).reshape(batch, steps, beam, steps, -1)
        return np.stack([weights[:, t, :, t] for t in range(steps)])


def keys_and_values(state: StepState) -> list:
    """Keys and values of each layer of a cache."""
    cache = state.per_sentence.cache
    return [x for layer in getattr(cache, "layers", cache) for x in layer]


def random_search(step, beam, steps=STEPS, seed=5) -> Searched:
    """Steps as a beam search takes them."""
    random = np.random.default_rng(seed)
    batch, state = len(SOURCE), step.start
    lines = np.zeros((batch, beam, steps), int)
    seen = Searched([], [], [], [])
    for index in range(steps):
        lines = lines.copy()
        lines[:, :, index] = random.integers(3, VOCABULARY, (batch, beam))
        logits, state = take_step(step, lines[:, :, index], state, index)
        seen.lines.append(lines)
        seen.logits.append(logits)
        seen.coverage.append(state.per_hypothesis.coverage)
        seen.caches.append([ops.convert_to_numpy(x) for x in keys_and_values(state)])
        parents = random.integers(0, beam, (batch, beam))
        lines = lines[np.arange(batch)[:, None], parents]
        state = reordered(state, parents)
    return Searched(np.stack(seen.lines), np.stack(seen.logits), seen.coverage, seen.caches)


# Logits


@each_layout
@pytest.mark.parametrize("beam", [pytest.param(1, marks=pytest.mark.slow), 3])
@each_variant
def test_every_cached_step_equals_decoding_the_whole(variant, beam, static_shapes):
    model = make_model(**variant)
    hypotheses = random_tokens(2, beam, STEPS)
    step = decoder(model, SOURCE, beam, CAPACITY, static_shapes)
    logits, _ = stepped_logits(step, hypotheses)
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_resizing_a_static_cache_changes_nothing(beam):
    model, hypotheses = make_model(key_dim=3, value_dim=5), random_tokens(2, beam, STEPS)
    step = decoder(model, SOURCE, beam, CAPACITY, static_shapes=True, capacity=2)
    assert step.cache_schedule.capacities == (2, CAPACITY)
    state, logits = step.start, []
    for index in range(STEPS):
        capacity = 2 if index < 2 else CAPACITY
        state = step.cache_schedule.resize(state, capacity)
        one, state = take_step(step, hypotheses[:, :, index], state, index)
        logits.append(one)
        assert state.per_hypothesis.cache.shape[2] == capacity * beam
        for key, value in state.per_sentence.cache:
            assert key.shape[2] == value.shape[1] == capacity * beam
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(np.stack(logits, axis=2), expected, rtol=0, atol=1e-5)


def check_reordering(model, beam, static_shapes):
    step = decoder(model, SOURCE, beam, CAPACITY, static_shapes)
    seen = random_search(step, beam)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)


@each_layout
@each_variant
def test_a_hypothesis_attends_to_its_ancestors_alone_when_the_beam_is_reordered(
    variant, static_shapes
):
    check_reordering(make_model(**variant), 4, static_shapes)


@each_layout
@pytest.mark.parametrize("beam", [1, 2, 9])
def test_reordering_works_in_beams_of_any_size(beam, static_shapes):
    """Beams of 9 attend by matrix products, smaller ones element by element."""
    check_reordering(make_model(), beam, static_shapes)


@each_layout
def test_the_cache_is_never_reordered_and_gains_the_newest_rows(static_shapes):
    """Rows stay in their places; this makes reordering a beam cheap."""
    model, beam = make_model(key_dim=3, value_dim=5), 3
    seen = random_search(decoder(model, SOURCE, beam, CAPACITY, static_shapes), beam)
    axes = [-1 if static_shapes else -2, -2] * 2  # of rows, in keys and values of two layers
    before = [()] * 4
    for index, cache in enumerate(seen.caches):
        written = (index + 1) * beam
        after = [np.moveaxis(rows, axis, 0) for rows, axis in zip(cache, axes, strict=True)]
        for old, new in zip(before, after, strict=True):
            assert len(new) == (CAPACITY * beam if static_shapes else written)
            assert np.array_equal(new[: len(old)], old) or index == 0
            assert not new[written:].any()
        before = [new[:written] for new in after]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_static_cache_has_the_layout_of_xla(beam):
    """XLA copies a cache in every step if it must reshape it before a product."""
    step = decoder(make_model(key_dim=3, value_dim=5), SOURCE, beam, CAPACITY, True)
    heads = len(SOURCE) * 2
    for key, value in step.start.per_sentence.cache:
        assert key.shape == (heads, 3, CAPACITY * beam)
        assert value.shape == (heads, CAPACITY * beam, 5)


@each_layout
@pytest.mark.parametrize("beam", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_steps_with_a_pattern_of_attention_equal_decoding_the_whole(pattern, beam, static_shapes):
    model = make_model(**pattern)
    seen = random_search(decoder(model, SOURCE, beam, CAPACITY, static_shapes), beam, CAPACITY - 1)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)
    if pattern.get("attention") == "local" and (static_shapes or beam == 1):
        rows = {cache[0].shape[-1 if static_shapes else -2] for cache in seen.caches[1:]}
        assert rows == {2 * beam}


@not_on_jax
def test_rows_without_descendants_are_dropped(monkeypatch):
    """In every step here: the ancestors of live hypotheses and the newest rows remain."""
    monkeypatch.setattr(cache_module, "COMPACTION_INTERVAL", 1)
    model, beam = make_model(), 5
    seen = random_search(decoder(model, SOURCE, beam, CAPACITY, static_shapes=False), beam)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)
    for index, cache in enumerate(seen.caches):
        # With these random tokens, only lines with the same ancestors are equal.
        ancestors = [
            {tuple(line[:n]) for line in lines for n in range(1, index + 1)}
            for lines in seen.lines[index]
        ]
        assert {rows.shape[2] for rows in cache} == {max(map(len, ancestors)) + beam}
    assert seen.caches[-1][0].shape[2] < STEPS * beam


@not_on_jax
def test_a_long_search_stays_exact():
    """With more steps than two intervals after which rows are dropped."""
    steps, beam = 2 * COMPACTION_INTERVAL + 2, 3
    model = make_model(num_layers=1)
    seen = random_search(decoder(model, SOURCE, beam, steps, False), beam, steps)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)
    assert seen.caches[-1][0].shape[2] < steps * beam / 2


@each_layout
def test_the_last_position_of_the_capacity_can_be_used(static_shapes):
    model = make_model(position="learned", max_length=5)
    hypotheses = random_tokens(2, 2, 5)
    step = decoder(model, SOURCE, 2, 5, static_shapes)
    logits, _ = stepped_logits(step, hypotheses)
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


def test_more_steps_than_learned_positions_are_an_error():
    with pytest.raises(ValueError, match="has 13 positions, but the sequence has 14"):
        decoder(make_model(position="learned"), SOURCE, 2, 14)


def test_the_cache_is_static_by_default_on_jax_alone():
    step = decoder(make_model(), SOURCE, 3, CAPACITY)
    assert step.start.per_hypothesis.cache.shape[2] == (CAPACITY * 3 if ON_JAX else 0)


@each_layout
def test_more_source_padding_changes_nothing(static_shapes):
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    logits, coverage = [], []
    for source in (SOURCE, np.pad(SOURCE, [(0, 0), (0, 6)])):
        step = decoder(model, source, 3, CAPACITY, static_shapes, coverage_penalty=0.2)
        found, state = stepped_logits(step, hypotheses)
        logits.append(found)
        coverage.append(ops.convert_to_numpy(state.per_hypothesis.coverage))
    np.testing.assert_allclose(logits[1], logits[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(coverage[1][:, :, :5], coverage[0], rtol=0, atol=1e-5)
    assert not coverage[1][:, :, 5:].any()


def test_more_capacity_changes_nothing():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    small, large = (
        stepped_logits(decoder(model, SOURCE, 3, length, True), hypotheses)[0]
        for length in (STEPS, 4 * STEPS)
    )
    np.testing.assert_allclose(large, small, rtol=0, atol=1e-5)


def test_rows_of_a_batch_are_independent():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    other_source, other_hypotheses = SOURCE.copy(), hypotheses.copy()
    other_source[1], other_hypotheses[1] = [3, 3, 3, 3, 2], 4
    one, other = (
        stepped_logits(decoder(model, source, 3, CAPACITY), targets)[0]
        for source, targets in ((SOURCE, hypotheses), (other_source, other_hypotheses))
    )
    np.testing.assert_allclose(other[0], one[0], rtol=0, atol=1e-6)
    assert np.abs(other[1] - one[1]).max() > 0.1


def test_hypotheses_of_a_sentence_are_independent():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    others = hypotheses.copy()
    others[:, 1] = 4
    one, other = (
        stepped_logits(decoder(model, SOURCE, 3, CAPACITY), targets)[0]
        for targets in (hypotheses, others)
    )
    np.testing.assert_allclose(other[:, [0, 2]], one[:, [0, 2]], rtol=0, atol=1e-6)
    assert np.abs(other[:, 1] - one[:, 1]).max() > 0.1


# Coverage


@each_layout
@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_coverage_is_the_attention_that_each_source_token_received(norm_first, static_shapes):
    """That of the last layer, averaged over heads, summed over the hypothesis and its ancestors."""
    model, beam = make_model(norm_first=norm_first), 3
    step = decoder(model, SOURCE, beam, CAPACITY, static_shapes, coverage_penalty=0.2)
    seen = random_search(step, beam)
    coverage = reference.array(seen.coverage)
    np.testing.assert_allclose(coverage, seen.attended(model), rtol=0, atol=1e-5)
    # Each position's attention sums to 1.
    positions = np.arange(STEPS)[:, None, None] + 1
    np.testing.assert_allclose(np.sum(coverage, axis=-1) / positions, 1, rtol=1e-5)


def test_coverage_is_tracked_only_on_request():
    step = decoder(make_model(), SOURCE, 3, CAPACITY)
    _, state = stepped_logits(step, random_tokens(2, 3, 2))
    assert state.per_hypothesis.coverage == ()


def test_coverage_penalty_by_hand():
    """β Σ ln(min(c, 1)): ln 0.5 + ln 0.25 = -3 ln 2; values above 1 and padding add nothing."""
    coverage = np.float32([[[0.5, 0.25, 3.0], [1.0, 1.0, 1.0]], [[0.5, 0.0, 0.0], [2.0, 0.0, 0.1]]])
    mask = np.array([[True, True, True], [True, False, False]])
    penalty = coverage_penalty(coverage, mask[:, None], beta=0.2)
    expected = 0.2 * np.log(2) * np.array([[-3, 0], [-1, 0]])
    np.testing.assert_allclose(ops.convert_to_numpy(penalty), expected, rtol=1e-6)


def test_source_token_without_any_attention_has_a_finite_penalty():
    penalty = coverage_penalty(np.zeros((1, 1, 2), "float32"), np.ones((1, 1, 2), bool), beta=1.0)
    assert np.isfinite(ops.convert_to_numpy(penalty)).all()
    assert ops.convert_to_numpy(penalty).item() < -10


# Positions


class RelativeToy(PositionEncoding):
    """A relative encoding with all hooks: rotates pairs by position, and scores fall with distance.

    Its scores depend on the difference of positions alone.
    """

    def rotate(self, heads, positions):
        angle = 0.1 * ops.cast(positions, "float32")[:, None]  # (T, 1)
        first, second = ops.split(heads, [heads.shape[-1] // 2], axis=-1)
        cosine, sine = ops.cos(angle), ops.sin(angle)
        return ops.concatenate(
            [first * cosine - second * sine, first * sine + second * cosine], axis=-1
        )

    def bias(self, query, query_positions, key_positions):
        distance = ops.abs(query_positions[None, :, None] - key_positions[:, None, :])
        slope = ops.reshape(ops.arange(1, query.shape[1] + 1, dtype="float32"), (1, -1, 1, 1))
        return -0.3 * slope * ops.cast(distance[:, None], "float32")  # (1 or B, H, T, S)


def with_position(name, monkeypatch):
    """A model whose heads have an even size; its distances exceed `max_relative_distance`."""
    monkeypatch.setitem(encodings.ENCODINGS, "toy", lambda *_, **options: RelativeToy(**options))
    sizes = {"num_layers": 1, "key_dim": 6, "value_dim": 5, "max_relative_distance": 3}
    return make_model(position=name, **sizes)


@each_layout
@pytest.mark.parametrize("name", ["toy", "rotary", "relative", "t5", "alibi", "none"])
def test_cached_decoding_is_exact_with_any_position_encoding(name, static_shapes, monkeypatch):
    """Longer than three intervals after which rows of the cache are dropped."""
    monkeypatch.setattr(cache_module, "COMPACTION_INTERVAL", 3)
    model, steps, beam = with_position(name, monkeypatch), 11, 3
    step = decoder(model, SOURCE, beam, steps, static_shapes)
    seen = random_search(step, beam, steps)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-4)
    if not static_shapes:
        assert seen.caches[-1][0].shape[2] < 0.8 * steps * beam


@pytest.mark.parametrize("name", ["toy", "rotary", "relative", "t5", "alibi"])
def test_a_position_encoding_changes_the_result(name, monkeypatch):
    """Guards the test above: without the hooks, the same weights give other logits."""
    model, tokens = with_position(name, monkeypatch), random_tokens(2, 1, 9)
    encoded = whole_logits(model, SOURCE, tokens)
    model.encoder.position = model.decoder.position = None
    assert np.abs(whole_logits(model, SOURCE, tokens) - encoded).max() > 0.01


# Compiled, and in bfloat16


@only_tensorflow
def test_compiled_by_xla_logits_are_the_same():
    import tensorflow as tf

    model, beam = make_model(), 3
    hypotheses = random_tokens(2, beam, STEPS).astype("int32")
    parents = np.random.default_rng(6).integers(0, beam, (STEPS, 2, beam)).astype("int32")

    def all_logits(source, hypotheses, static_shapes):
        step = decoder(model, source, beam, CAPACITY, static_shapes, coverage_penalty=0.2)
        state, logits = step.start, []
        for index in range(STEPS):
            one, state = step(hypotheses[:, :, index], state, tf.constant(index))
            per_hypothesis = tree.map_structure(
                lambda leaf: tf.gather(leaf, parents[index], batch_dims=1),  # noqa: B023
                state.per_hypothesis,
            )
            state = StepState(per_hypothesis, state.per_sentence)
            logits.append(one)
        return tf.stack(logits), state.per_hypothesis.coverage

    eager = all_logits(SOURCE.astype("int32"), hypotheses, static_shapes=False)
    compiled = tf.function(lambda *ids: all_logits(*ids, static_shapes=True), jit_compile=True)
    for ours, theirs in zip(compiled(SOURCE.astype("int32"), hypotheses), eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@only_tensorflow
@pytest.mark.parametrize("static_shapes", [True, False], ids="static_shapes={}".format)
def test_graph_with_unknown_sizes_gives_the_same_logits(static_shapes):
    import tensorflow as tf

    model, hypotheses = make_model(), random_tokens(2, 3, 2).astype("int32")
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[ids, tf.TensorSpec((None, 3, 2), tf.int32)], autograph=False)
    def graph(source, hypotheses):
        step = decoder(model, source, 3, tf.shape(source)[1] + 6, static_shapes)
        state, logits = step.start, []
        for index in range(2):
            one, state = step(hypotheses[:, :, index], state, tf.constant(index))
            logits.append(one)
        return tf.stack(logits, axis=2)

    expected = whole_logits(model, SOURCE, hypotheses)
    logits = graph(SOURCE.astype("int32"), hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


@each_layout
@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_in_bfloat16_logits_are_near(dtype, static_shapes):
    whole, model = make_model(), make_model(dtype)
    hypotheses = random_tokens(2, 3, STEPS)
    step = decoder(model, SOURCE, 3, CAPACITY, static_shapes, coverage_penalty=0.2)
    logits, state = stepped_logits(step, hypotheses)
    expected = whole_logits(whole, SOURCE, hypotheses)
    # 8 bits of precision, on logits with a standard deviation of about 1.
    assert np.abs(logits - expected).mean() < 0.05 * expected.std()
    dtype_of = keras.backend.standardize_dtype
    assert {dtype_of(x.dtype) for x in keys_and_values(state)} == {"bfloat16"}
    assert dtype_of(state.per_hypothesis.coverage.dtype) == "float32"
