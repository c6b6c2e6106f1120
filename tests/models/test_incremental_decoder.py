"""The decoder one step at a time, against the model run over whole targets."""

import functools
from typing import NamedTuple

import keras
import numpy as np
import pytest
import reference
from keras import ops, tree

from tf_transformer import incremental
from tf_transformer.config import ModelConfig
from tf_transformer.decoding import StepState
from tf_transformer.layers import Folded
from tf_transformer.models.incremental_decoder import (
    IncrementalDecoder,
    Own,
    Shared,
    coverage_penalty,
)
from tf_transformer.models.transformer import Transformer

VOCABULARY = 23
# Two sentences; 0 is padding, and only the second has some.
SOURCE = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
STEPS, ROOM = 4, 6
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned": {"position": "learned"},
    "odd heads": {"key_dim": 3, "value_dim": 5, "attention_bias": True},
    "untied": {"tie_embeddings": "none", "num_layers": 3},
}
# XLA, and so JAX, has no tensors that grow.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
each_size = pytest.mark.parametrize(
    "fixed_size", [True, False] if ON_TENSORFLOW else [True], ids="fixed_size={}".format
)
only_tensorflow = pytest.mark.skipif(not ON_TENSORFLOW, reason="compiles with tf.function")


@functools.cache
def make_model(dtype="float32", **changes):
    """A small model with random gains and biases, always the same."""
    sizes = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2, "max_length": 13}
    model = Transformer(VOCABULARY, ModelConfig(**sizes | changes), dtype=dtype)
    model.build()
    return reference.randomize(model, seed=3)


def random_tokens(*shape, seed=4):
    return np.random.default_rng(seed).integers(3, VOCABULARY, shape)


def whole_logits(model, source, targets):
    """Logits (B, W, T, V) of hypotheses (B, W, T), each decoded by itself and all at once."""
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
    """Own rows (B, W, ...) gathered as a beam does it, parents (B, W); the past left alone."""
    rows = np.arange(len(parents))[:, None]
    own = tree.map_structure(
        lambda leaf: ops.convert_to_tensor(ops.convert_to_numpy(leaf)[rows, parents]), state.own
    )
    return StepState(own, state.shared)


class Searched(NamedTuple):
    """What a search with random tokens and random parents went through, step by step (T, ...)."""

    lines: np.ndarray  # (T, B, W, T): tokens on each hypothesis' own line, then zeros
    logits: np.ndarray  # (T, B, W, V): its newest
    coverage: list  # (T, B, W, S)
    pasts: list[list[np.ndarray]]  # keys and values of each layer

    def decoded_whole(self, model) -> np.ndarray:
        """The logits (T, B, W, V) of each line at its last token, decoded from scratch."""
        steps, batch, beam, _ = self.lines.shape
        lines = self.lines.transpose(1, 0, 2, 3).reshape(batch, -1, steps)  # (B, T·W, T)
        logits = whole_logits(model, SOURCE, lines).reshape(batch, steps, beam, steps, -1)
        return np.stack([logits[:, t, :, t] for t in range(steps)])

    def attended(self, model) -> np.ndarray:
        """The attention (T, B, W, S) that source tokens got on each line, head by head averaged."""
        steps, batch, beam, _ = self.lines.shape
        lines = self.lines.transpose(1, 0, 2, 3).reshape(-1, steps)  # (B·T·W, T)
        sources = np.repeat(SOURCE, steps * beam, axis=0)
        weights = ops.convert_to_numpy(model.cross_attention_weights(sources, lines)[-1])
        weights = weights.mean(axis=1).cumsum(axis=1).reshape(batch, steps, beam, steps, -1)
        return np.stack([weights[:, t, :, t] for t in range(steps)])


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
        seen.coverage.append(state.own.coverage)
        seen.pasts.append([ops.convert_to_numpy(leaf) for leaf in tree.flatten(state.shared.past)])
        parents = random.integers(0, beam, (batch, beam))
        lines = lines[np.arange(batch)[:, None], parents]
        state = reordered(state, parents)
    return Searched(np.stack(seen.lines), np.stack(seen.logits), seen.coverage, seen.pasts)


# Logits


@each_size
@pytest.mark.parametrize("beam", [1, 3])
@each_variant
def test_every_cached_step_equals_decoding_the_whole(variant, beam, fixed_size):
    model = make_model(**variant)
    hypotheses = random_tokens(2, beam, STEPS)
    step = IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size)
    logits, _ = stepped_logits(step, hypotheses)
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


@each_size
@pytest.mark.parametrize("beam", [1, 3])
@each_variant
def test_so_it_does_for_a_sentence_by_itself(variant, beam, fixed_size):
    """Its memory is folded, and one row is multiplied with the output embedding as that lies."""
    model, hypotheses = make_model(**variant), random_tokens(1, beam, STEPS)
    source = SOURCE[1:]  # with padding
    step = IncrementalDecoder(model, source, beam, ROOM, fixed_size, alone=True)
    is_folded = isinstance(step.start.shared.memory[0], Folded)
    assert is_folded != variant.get("attention_bias", False)
    logits, _ = stepped_logits(step, hypotheses)
    expected = whole_logits(model, source, hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


@each_size
def test_attention_is_tracked_for_a_sentence_by_itself_too(fixed_size):
    model, hypotheses = make_model(), random_tokens(1, 3, STEPS)
    steps = [
        IncrementalDecoder(model, SOURCE[:1], 3, ROOM, fixed_size, True, alone)
        for alone in (False, True)
    ]
    found = [stepped_logits(step, hypotheses)[1].own.coverage for step in steps]
    np.testing.assert_allclose(*map(ops.convert_to_numpy, found), rtol=0, atol=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
def test_so_it_does_when_a_past_of_fixed_size_is_widened_on_the_way(beam):
    model, hypotheses = make_model(key_dim=3, value_dim=5), random_tokens(2, beam, STEPS)
    step = IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size=True, room=2)
    assert step.growth.lengths == (2, ROOM)
    state, logits = step.start, []
    for index in range(STEPS):
        room = 2 if index < 2 else ROOM
        state = step.growth.widen(state, room)
        one, state = take_step(step, hypotheses[:, :, index], state, index)
        logits.append(one)
        assert state.own.sees.shape[2] == room * beam
        for key, value in state.shared.past:
            assert key.shape[2] == value.shape[1] == room * beam
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(np.stack(logits, axis=2), expected, rtol=0, atol=1e-5)


def check_reordering(model, beam, fixed_size):
    step = IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size)
    seen = random_search(step, beam)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)


@each_size
@each_variant
def test_hypothesis_sees_its_own_ancestors_and_no_others_when_the_beam_is_reordered(
    variant, fixed_size
):
    check_reordering(make_model(**variant), 4, fixed_size)


@each_size
@pytest.mark.parametrize("beam", [1, 2, 9])
def test_so_it_does_in_a_beam_of_any_size(beam, fixed_size):
    """Beams of 9 attend in another way than small ones."""
    check_reordering(make_model(), beam, fixed_size)


@each_size
def test_past_is_not_reordered_but_grows_by_the_newest_rows(fixed_size):
    """What was written stays where it was; that is what makes reordering cheap."""
    model, beam = make_model(key_dim=3, value_dim=5), 3
    seen = random_search(IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size), beam)
    axes = [-1 if fixed_size else -2, -2] * 2  # of rows, in keys and values of two layers
    before = [()] * 4
    for index, pasts in enumerate(seen.pasts):
        written = (index + 1) * beam
        after = [np.moveaxis(past, axis, 0) for past, axis in zip(pasts, axes, strict=True)]
        for old, new in zip(before, after, strict=True):
            assert len(new) == (ROOM * beam if fixed_size else written)
            assert np.array_equal(new[: len(old)], old) or index == 0
            assert not new[written:].any()
        before = [new[:written] for new in after]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_past_of_fixed_size_is_laid_out_for_xla(beam):
    """A cache that XLA has to reshape before it multiplies is copied at every step."""
    step = IncrementalDecoder(make_model(key_dim=3, value_dim=5), SOURCE, beam, ROOM, True)
    heads = len(SOURCE) * 2
    for key, value in step.start.shared.past:
        assert key.shape == (heads, 3, ROOM * beam)
        assert value.shape == (heads, ROOM * beam, 5)


@only_tensorflow
def test_rows_that_no_hypothesis_descends_from_are_dropped(monkeypatch):
    """At every step here: what is left are the ancestors of those that live on, and the newest."""
    monkeypatch.setattr(incremental, "COMPACT_EVERY", 1)
    model, beam = make_model(), 5
    seen = random_search(IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size=False), beam)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)
    for index, past in enumerate(seen.pasts):
        # With these random tokens no two lines are alike but those with the same ancestors.
        ancestors = [
            {tuple(line[:n]) for line in lines for n in range(1, index + 1)}
            for lines in seen.lines[index]
        ]
        assert {rows.shape[2] for rows in past} == {max(map(len, ancestors)) + beam}
    assert seen.pasts[-1][0].shape[2] < STEPS * beam


@only_tensorflow
def test_a_long_search_stays_exact():
    """Past the steps at which rows are dropped."""
    steps, beam = 2 * incremental.COMPACT_EVERY + 2, 3
    model = make_model(num_layers=1)
    seen = random_search(IncrementalDecoder(model, SOURCE, beam, steps, False), beam, steps)
    np.testing.assert_allclose(seen.logits, seen.decoded_whole(model), rtol=0, atol=1e-5)
    assert seen.pasts[-1][0].shape[2] < steps * beam / 2


@each_size
def test_last_position_that_there_is_room_for_can_be_taken(fixed_size):
    model = make_model(position="learned", max_length=5)
    hypotheses = random_tokens(2, 2, 5)
    step = IncrementalDecoder(model, SOURCE, 2, 5, fixed_size)
    logits, _ = stepped_logits(step, hypotheses)
    expected = whole_logits(model, SOURCE, hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


def test_more_room_than_the_learned_positions_is_an_error():
    with pytest.raises(ValueError, match="has 13 positions, but the sequence has 14"):
        IncrementalDecoder(make_model(position="learned"), SOURCE, 2, 14)


def test_all_sizes_are_fixed_where_the_backend_needs_it():
    step = IncrementalDecoder(make_model(), SOURCE, 3, ROOM)
    rows = {keys.shape[2] for keys, _ in step.start.shared.past}
    assert rows == {0 if ON_TENSORFLOW else ROOM * 3}


@each_size
def test_more_source_padding_changes_nothing(fixed_size):
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    logits, coverage = [], []
    for source in (SOURCE, np.pad(SOURCE, [(0, 0), (0, 6)])):
        step = IncrementalDecoder(model, source, 3, ROOM, fixed_size, track_coverage=True)
        found, state = stepped_logits(step, hypotheses)
        logits.append(found)
        coverage.append(ops.convert_to_numpy(state.own.coverage))
    np.testing.assert_allclose(logits[1], logits[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(coverage[1][:, :, :5], coverage[0], rtol=0, atol=1e-5)
    assert not coverage[1][:, :, 5:].any()


def test_more_room_changes_nothing():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    tight, roomy = (
        stepped_logits(IncrementalDecoder(model, SOURCE, 3, room, fixed_size=True), hypotheses)[0]
        for room in (STEPS, 4 * STEPS)
    )
    np.testing.assert_allclose(roomy, tight, rtol=0, atol=1e-5)


def test_rows_of_a_batch_do_not_see_each_other():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    other_source, other_hypotheses = SOURCE.copy(), hypotheses.copy()
    other_source[1], other_hypotheses[1] = [3, 3, 3, 3, 2], 4
    one, other = (
        stepped_logits(IncrementalDecoder(model, source, 3, ROOM), targets)[0]
        for source, targets in ((SOURCE, hypotheses), (other_source, other_hypotheses))
    )
    np.testing.assert_allclose(other[0], one[0], rtol=0, atol=1e-6)
    assert np.abs(other[1] - one[1]).max() > 0.1


def test_hypotheses_of_a_sentence_do_not_see_each_other():
    model, hypotheses = make_model(), random_tokens(2, 3, STEPS)
    others = hypotheses.copy()
    others[:, 1] = 4
    one, other = (
        stepped_logits(IncrementalDecoder(model, SOURCE, 3, ROOM), targets)[0]
        for targets in (hypotheses, others)
    )
    np.testing.assert_allclose(other[:, [0, 2]], one[:, [0, 2]], rtol=0, atol=1e-6)
    assert np.abs(other[:, 1] - one[:, 1]).max() > 0.1


# Coverage


@each_size
@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
def test_coverage_is_the_attention_that_each_source_token_got(norm_first, fixed_size):
    """The last layer's, its heads averaged, summed over the hypothesis' own line."""
    model, beam = make_model(norm_first=norm_first), 3
    step = IncrementalDecoder(model, SOURCE, beam, ROOM, fixed_size, track_coverage=True)
    seen = random_search(step, beam)
    np.testing.assert_allclose(seen.coverage, seen.attended(model), rtol=0, atol=1e-5)
    # Each position's attention sums to 1.
    positions = np.arange(STEPS)[:, None, None] + 1
    np.testing.assert_allclose(np.sum(seen.coverage, axis=-1) / positions, 1, rtol=1e-5)


def test_coverage_is_only_tracked_when_asked_for():
    step = IncrementalDecoder(make_model(), SOURCE, 3, ROOM)
    _, state = stepped_logits(step, random_tokens(2, 3, 2))
    assert state.own.coverage == ()


def covering(coverage: np.ndarray, is_text: np.ndarray) -> StepState:
    """A state with this coverage (B, W, S) of sources whose text is here and padding there."""
    mask = ops.convert_to_tensor(is_text[:, None, None])
    own = Own((), ops.convert_to_tensor(coverage.astype("float32")))
    return StepState(own, Shared([], [], mask))


def test_coverage_penalty_by_hand():
    """β Σ ln(min(c, 1)): ln 0.5 + ln 0.25 = -3 ln 2, what is above 1 and padding left out."""
    coverage = np.float32([[[0.5, 0.25, 3.0], [1.0, 1.0, 1.0]], [[0.5, 0.0, 0.0], [2.0, 0.0, 0.1]]])
    mask = np.array([[True, True, True], [True, False, False]])
    penalty = coverage_penalty(covering(coverage, mask), beta=0.2)
    expected = 0.2 * np.log(2) * np.array([[-3, 0], [-1, 0]])
    np.testing.assert_allclose(ops.convert_to_numpy(penalty), expected, rtol=1e-6)


def test_source_token_without_any_attention_has_a_finite_penalty():
    penalty = coverage_penalty(covering(np.zeros((1, 1, 2)), np.ones((1, 2), bool)), beta=1.0)
    assert np.isfinite(ops.convert_to_numpy(penalty)).all()
    assert ops.convert_to_numpy(penalty).item() < -10


# Compiled, and in bfloat16


@only_tensorflow
def test_compiled_by_xla_logits_are_the_same():
    import tensorflow as tf

    model, beam = make_model(), 3
    hypotheses = random_tokens(2, beam, STEPS).astype("int32")
    parents = np.random.default_rng(6).integers(0, beam, (STEPS, 2, beam)).astype("int32")

    def all_logits(source, hypotheses, fixed_size):
        step = IncrementalDecoder(model, source, beam, ROOM, fixed_size, track_coverage=True)
        state, logits = step.start, []
        for index in range(STEPS):
            one, state = step(hypotheses[:, :, index], state, tf.constant(index))
            own = tree.map_structure(
                lambda leaf: tf.gather(leaf, parents[index], batch_dims=1),  # noqa: B023
                state.own,
            )
            state = StepState(own, state.shared)
            logits.append(one)
        return tf.stack(logits), state.own.coverage

    eager = all_logits(SOURCE.astype("int32"), hypotheses, fixed_size=False)
    compiled = tf.function(lambda *ids: all_logits(*ids, fixed_size=True), jit_compile=True)
    for ours, theirs in zip(compiled(SOURCE.astype("int32"), hypotheses), eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@only_tensorflow
@pytest.mark.parametrize("fixed_size", [True, False], ids="fixed_size={}".format)
def test_graph_with_unknown_sizes_gives_the_same_logits(fixed_size):
    import tensorflow as tf

    model, hypotheses = make_model(), random_tokens(2, 3, 2).astype("int32")
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[ids, tf.TensorSpec((None, 3, 2), tf.int32)], autograph=False)
    def graph(source, hypotheses):
        step = IncrementalDecoder(model, source, 3, tf.shape(source)[1] + 6, fixed_size)
        state, logits = step.start, []
        for index in range(2):
            one, state = step(hypotheses[:, :, index], state, tf.constant(index))
            logits.append(one)
        return tf.stack(logits, axis=2)

    expected = whole_logits(model, SOURCE, hypotheses)
    logits = graph(SOURCE.astype("int32"), hypotheses)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


@each_size
@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_in_bfloat16_logits_are_near(dtype, fixed_size):
    whole, model = make_model(), make_model(dtype)
    hypotheses = random_tokens(2, 3, STEPS)
    step = IncrementalDecoder(model, SOURCE, 3, ROOM, fixed_size, track_coverage=True)
    logits, state = stepped_logits(step, hypotheses)
    expected = whole_logits(whole, SOURCE, hypotheses)
    # 8 bits of precision, on logits with a standard deviation of about 1.
    assert np.abs(logits - expected).mean() < 0.05 * expected.std()
    dtype_of = keras.backend.standardize_dtype
    assert {dtype_of(leaf.dtype) for leaf in tree.flatten(state.shared.past)} == {"bfloat16"}
    assert dtype_of(state.own.coverage.dtype) == "float32"
