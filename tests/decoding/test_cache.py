"""Every layout of keys and values gives the attention of the same keys and values in one tensor."""

import keras
import numpy as np
import pytest
import reference
from keras import ops, tree

from tf_transformer.decoding import cache
from tf_transformer.decoding.cache import GrowingCache
from tf_transformer.decoding.static_cache import StaticArrays, StaticCache, StaticKeyValue
from tf_transformer.layers import CrossAttention, KeyValue

BATCH, BEAM, SOURCE, HEADS, KEY_DIM, VALUE_DIM, D_MODEL, D_MEMORY = 2, 3, 5, 7, 11, 13, 17, 19
STEPS = 8
# XLA, and so JAX, has no tensors that grow.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def random_mask(*shape):
    mask = np.random.default_rng(2).random(shape) < 0.5
    mask[..., 0] = True
    return mask


def random_key_value(length, batch=BATCH, seed=3) -> KeyValue:
    sizes = (KEY_DIM, VALUE_DIM)
    arrays = (normal(batch, HEADS, length, size, seed=seed + i) for i, size in enumerate(sizes))
    return KeyValue(*map(ops.convert_to_tensor, arrays))


def nothing(rows=0, batch=BATCH) -> KeyValue:
    return KeyValue(*(ops.zeros((batch, HEADS, rows, size)) for size in (KEY_DIM, VALUE_DIM)))


def static(key_value: KeyValue) -> StaticKeyValue:
    return StaticKeyValue(StaticArrays.of(key_value), HEADS)


# Keys and values of one layer

LAYOUTS = {"plain": lambda key_value: key_value, "static": static}


@pytest.mark.parametrize("queries", [1, BEAM])
@pytest.mark.parametrize("name", LAYOUTS)
def test_cross_attention_to_a_memory_in_any_layout_equals_numpy(name, queries):
    layer = CrossAttention(num_heads=HEADS, key_dim=KEY_DIM, value_dim=VALUE_DIM)
    layer.build((None, None, D_MODEL), (None, None, D_MEMORY))
    reference.randomize(layer)
    x, states = normal(BATCH, queries, D_MODEL), normal(BATCH, SOURCE, D_MEMORY, seed=2)
    mask = random_mask(BATCH, 1, 1, SOURCE)
    memory = LAYOUTS[name](layer.keys_values(ops.convert_to_tensor(states)))
    attended = layer.attend(layer.queries(ops.convert_to_tensor(x)), memory, mask)
    expected = [
        reference.multi_head_attention(layer, *sentence)
        for sentence in zip(x, states, mask[:, 0], strict=True)
    ]
    for ours, theirs in zip(attended[:2], zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(reference.array(ours), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("has_bias", [False, True], ids="has_bias={}".format)
@pytest.mark.parametrize("name", ["growing", "static"])
def test_attention_to_appended_keys_equals_numpy(name, has_bias):
    """Two positions, then one, then three; the static layout has a free row at the end."""
    parts = [random_key_value(length, seed=10 * length) for length in (2, 1, 3)]
    key_value, *rest = parts if name == "growing" else [static(nothing(7)), *parts]
    for part in rest:
        key_value = key_value.with_new(part)
    rows = 6 if name == "growing" else 7
    mask = random_mask(BATCH, 1, BEAM, rows) & (np.arange(rows) < 6)
    bias = normal(1, HEADS, BEAM, rows, seed=6) if has_bias else None
    query = normal(BATCH, HEADS, BEAM, KEY_DIM, seed=7)
    found = key_value.weighted(ops.convert_to_tensor(query), mask, bias)
    key, value = (
        np.concatenate([*map(reference.array, arrays)], axis=2)
        for arrays in zip(*parts, strict=True)
    )
    weights = reference.attention_weights(
        query, key, mask[..., :6], 0.0 if bias is None else bias[..., :6]
    )
    np.testing.assert_allclose(reference.array(found.heads), weights @ value, atol=1e-5)
    np.testing.assert_allclose(reference.array(found.weights)[..., :6], weights, atol=1e-5)
    assert not reference.array(found.weights)[..., 6:].any()


def test_the_static_layout_has_the_order_of_axes_that_xla_multiplies_in():
    """XLA would copy a cache in another order in every step."""
    key, value = StaticArrays.of(random_key_value(SOURCE))
    assert key.shape == (BATCH * HEADS, KEY_DIM, SOURCE)
    assert value.shape == (BATCH * HEADS, SOURCE, VALUE_DIM)


# Caches of a decoder

LAYERS = 2


class RecordedBeam:
    """A beam with random parents in a cache, and the keys of each hypothesis in a list.

    Each row of the cache holds another random number. A hypothesis must see the numbers of its
    own ancestors, at their positions, and no others.
    """

    def __init__(self, cache, steps=STEPS, batch=BATCH):
        self.cache = cache
        self.kept = cache.resize(cache.start([nothing(batch=batch)] * LAYERS, None), steps)
        self.expected = [[{} for _ in range(BEAM)] for _ in range(batch)]
        self.random = np.random.default_rng(5)

    def step(self, index: int):
        batch = len(self.expected)
        self.begun = self.cache.begin(self.kept, ops.convert_to_tensor(index, "int32"))
        numbers = self.random.random((batch, BEAM)).astype("float32")
        layers = []
        for layer, earlier in enumerate(self.begun.earlier):
            new = np.broadcast_to((numbers + layer)[:, None, :, None], (batch, HEADS, BEAM, 1))
            sizes = (KEY_DIM, VALUE_DIM)
            new = KeyValue(*(ops.convert_to_tensor(np.repeat(new, size, -1)) for size in sizes))
            layers.append(earlier.with_new(new))
        self.kept = self.cache.commit(self.begun, layers)
        for sentence, beam in enumerate(self.expected):
            for hypothesis, keys in enumerate(beam):
                keys[index] = numbers[sentence, hypothesis]

    def reorder(self):
        parents = self.random.integers(0, BEAM, (len(self.expected), BEAM))
        rows = np.arange(len(parents))[:, None]
        ancestors = ops.convert_to_numpy(self.kept.per_hypothesis)[rows, parents]
        self.kept = self.kept._replace(per_hypothesis=ops.convert_to_tensor(ancestors))
        self.expected = [
            [dict(beam[parent]) for parent in own]
            for beam, own in zip(self.expected, parents, strict=True)
        ]

    def select(self, sentences):
        """As a search removes finished sentences: by their index in each tensor."""
        self.kept = tree.map_structure(
            lambda leaf: ops.take(leaf, np.int32(sentences), axis=0), self.kept
        )
        self.expected = [self.expected[sentence] for sentence in sentences]

    def check(self):
        """The keys and positions that the mask shows are those of the ancestors."""
        mask = ops.convert_to_numpy(self.begun.mask)[:, 0]  # (B, W, R)
        rows = mask.shape[2]
        positions = ops.convert_to_numpy(self.begun.positions)
        positions = np.broadcast_to(positions, (len(self.expected), rows))
        cache = self.kept.per_sentence
        for layer, key_value in enumerate(getattr(cache, "layers", cache)):
            keys, values = (numbers_of(field, len(self.expected), rows) for field in key_value)
            np.testing.assert_array_equal(keys[mask.any(axis=1)], values[mask.any(axis=1)])
            for sentence, beam in enumerate(self.expected):
                for hypothesis, expected in enumerate(beam):
                    visible = mask[sentence, hypothesis]
                    found = zip(positions[sentence, visible], keys[sentence, visible], strict=True)
                    assert sorted(found) == [
                        (position, np.float32(number + layer))
                        for position, number in sorted(expected.items())
                    ]


def numbers_of(field, batch, rows) -> np.ndarray:
    """The number in each row (B, R) of keys or values, which all heads and sizes repeat."""
    field = ops.convert_to_numpy(field).reshape(batch, HEADS, *field.shape[-2:])
    field = field if field.shape[2] == rows else field.swapaxes(2, 3)
    return field[:, 0, :, 0]


CACHES = {"static": StaticCache(BEAM, HEADS)}
CACHES |= {"growing": GrowingCache(BEAM)} if ON_TENSORFLOW else {}


@pytest.mark.parametrize("name", CACHES)
def test_each_hypothesis_sees_its_ancestors_at_their_positions(name, monkeypatch):
    """The growing cache removes rows in every third step."""
    monkeypatch.setattr(cache, "COMPACTION_INTERVAL", 3)
    beam = RecordedBeam(CACHES[name])
    for index in range(STEPS):
        beam.step(index)
        beam.check()
        beam.reorder()
    rows = ops.shape(beam.begun.positions)[1]
    assert (rows < STEPS * BEAM) == (name == "growing")


@pytest.mark.skipif(not ON_TENSORFLOW, reason="XLA, and so JAX, has no tensors that grow")
def test_sentences_removed_from_a_growing_cache_leave_the_others_unchanged(monkeypatch):
    """Before and after the cache removes rows, in steps 2 and 5."""
    monkeypatch.setattr(cache, "COMPACTION_INTERVAL", 3)
    beam = RecordedBeam(GrowingCache(BEAM), batch=5)
    remaining = {1: [4, 0, 2, 3], 5: [3, 0]}
    for index in range(STEPS):
        beam.step(index)
        beam.check()
        beam.reorder()
        if index in remaining:
            beam.select(remaining[index])


def test_a_static_cache_keeps_its_rows_when_its_capacity_changes():
    beam = RecordedBeam(StaticCache(BEAM, HEADS), steps=4)
    for step in range(STEPS):
        if step == 4:
            beam.kept = beam.cache.resize(beam.kept, STEPS)
            assert ops.shape(beam.kept.per_hypothesis)[2] == STEPS * BEAM
        beam.step(step)
        beam.check()
        beam.reorder()


@pytest.mark.skipif(not ON_TENSORFLOW, reason="XLA, and so JAX, has no tensors that grow")
def test_a_growing_cache_of_one_hypothesis_needs_no_mask():
    alone = GrowingCache(beam_size=1)
    kept = alone.start([nothing()] * LAYERS, None)
    assert alone.begin(kept, ops.convert_to_tensor(0, "int32")).mask is None
