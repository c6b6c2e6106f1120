"""Every layout of keys and values gives the attention of the same keys and values in one tensor."""

import keras
import numpy as np
import pytest
import reference
from keras import ops, tree

from tf_transformer.layers import KeyValue, Memory, MultiHeadAttention, cache
from tf_transformer.layers.cache import (
    AbsorbedKeyValue,
    GrowingCache,
    LayerSize,
    StaticCache,
    StaticKeyValue,
)

BATCH, BEAM, SOURCE, HEADS, KEY_DIM, VALUE_DIM, D_MODEL, D_MEMORY = 2, 3, 5, 7, 11, 13, 17, 19
STEPS = 8
SIZE = LayerSize(HEADS, KEY_DIM, VALUE_DIM, "float32")
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


def empty_static(rows) -> StaticKeyValue:
    return StaticKeyValue.of(KeyValue(*SIZE.zeros(BATCH, rows)))


# Keys and values of one layer


def cross_attention(use_bias=False) -> MultiHeadAttention:
    layer = MultiHeadAttention(HEADS, KEY_DIM, VALUE_DIM, use_bias=use_bias, name="attention")
    layer.build((None, None, D_MODEL), (None, None, D_MEMORY))
    return reference.randomize(layer)


MEMORIES = {
    "states": lambda layer, states: Memory(states),
    "key and value": lambda layer, states: layer.project_key_value(states),
    "static": lambda layer, states: StaticKeyValue.of(layer.project_key_value(states)),
    "absorbed": lambda layer, states: AbsorbedKeyValue.of(layer.project_key_value(states), layer),
}


@pytest.mark.parametrize("queries", [1, BEAM])
@pytest.mark.parametrize("name", MEMORIES)
def test_cross_attention_to_a_memory_in_any_layout_equals_numpy(name, queries):
    layer, batch = cross_attention(), 1 if name == "absorbed" else BATCH
    x, states = normal(batch, queries, D_MODEL), normal(batch, SOURCE, D_MEMORY, seed=2)
    mask = random_mask(batch, 1, 1, SOURCE)
    memory = MEMORIES[name](layer, ops.convert_to_tensor(states))
    found = memory.cross_attend(layer, ops.convert_to_tensor(x), mask)
    expected = [
        reference.multi_head_attention(layer, *sentence)
        for sentence in zip(x, states, mask[:, 0], strict=True)
    ]
    for one, other in zip(found[:2], zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(reference.array(one), other, rtol=1e-5, atol=1e-5)


def test_a_memory_cannot_absorb_the_weights_of_a_layer_with_biases():
    layer = cross_attention(use_bias=True)
    key_value = layer.project_key_value(normal(1, SOURCE, D_MEMORY))
    with pytest.raises(ValueError, match="attention has biases, so its memory cannot absorb"):
        AbsorbedKeyValue.of(key_value, layer)


@pytest.mark.parametrize("has_bias", [False, True], ids="has_bias={}".format)
@pytest.mark.parametrize("name", ["growing", "static"])
def test_attention_to_appended_keys_equals_numpy(name, has_bias):
    """Two positions, then one, then three; the static layout has a free row at the end."""
    parts = [random_key_value(length, seed=10 * length) for length in (2, 1, 3)]
    key_value, *rest = parts if name == "growing" else [empty_static(7), *parts]
    for part in rest:
        key_value = key_value.append(part)
    rows = 6 if name == "growing" else 7
    mask = random_mask(BATCH, 1, BEAM, rows) & (np.arange(rows) < 6)
    bias = normal(1, HEADS, BEAM, rows, seed=6) if has_bias else None
    query = normal(BATCH, HEADS, BEAM, KEY_DIM, seed=7)
    found = key_value.attend(ops.convert_to_tensor(query), mask, bias)
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
    key, value, start = StaticKeyValue.of(random_key_value(SOURCE))
    assert key.shape == (BATCH * HEADS, KEY_DIM, SOURCE)
    assert value.shape == (BATCH * HEADS, SOURCE, VALUE_DIM)
    assert int(start) == 0


# Caches of a decoder

LAYERS = 2


class RecordedBeam:
    """A beam with random parents in a cache, and the keys of each hypothesis in a list.

    Each row of the cache holds another random number. A hypothesis must see the numbers of its
    own ancestors, at their positions, and no others.
    """

    def __init__(self, layout, rows, batch=BATCH):
        self.source = np.ones((batch, 4), "int32")
        self.cache = layout.empty(ops.convert_to_tensor(self.source), LAYERS, SIZE, rows)
        count = ops.shape(self.cache.positions(BEAM))[1]
        self.ancestors = ops.zeros((batch, BEAM, count), "bool")
        self.expected = [[{} for _ in range(BEAM)] for _ in range(batch)]
        self.random = np.random.default_rng(5)

    def step(self, index: int):
        batch = len(self.expected)
        self.ancestors, self.cache = self.cache.open(
            self.ancestors, ops.convert_to_tensor(index, "int32")
        )
        numbers = self.random.random((batch, BEAM)).astype("float32")
        layers = []
        for layer, key_value in enumerate(self.cache.layers):
            new = np.broadcast_to((numbers + layer)[:, None, :, None], (batch, HEADS, BEAM, 1))
            sizes = (KEY_DIM, VALUE_DIM)
            new = KeyValue(*(ops.convert_to_tensor(np.repeat(new, size, -1)) for size in sizes))
            layers.append(key_value.append(new))
        self.cache = self.cache._replace(layers=layers)
        for sentence, beam in enumerate(self.expected):
            for hypothesis, keys in enumerate(beam):
                keys[index] = numbers[sentence, hypothesis]

    def reorder(self):
        parents = self.random.integers(0, BEAM, (len(self.expected), BEAM))
        rows = np.arange(len(parents))[:, None]
        self.ancestors = ops.convert_to_tensor(ops.convert_to_numpy(self.ancestors)[rows, parents])
        self.expected = [
            [dict(beam[parent]) for parent in own]
            for beam, own in zip(self.expected, parents, strict=True)
        ]

    def select(self, sentences):
        """As a search removes finished sentences: by their index in each tensor."""
        self.ancestors, self.cache = tree.map_structure(
            lambda leaf: ops.take(leaf, np.int32(sentences), axis=0), (self.ancestors, self.cache)
        )
        self.expected = [self.expected[sentence] for sentence in sentences]

    def check(self):
        """The keys and positions that the mask shows are those of the ancestors."""
        mask = ops.convert_to_numpy(self.cache.mask(self.ancestors))[:, 0]  # (B, W, R)
        rows = mask.shape[2]
        positions = ops.convert_to_numpy(self.cache.positions(BEAM))
        positions = np.broadcast_to(positions, (len(self.expected), rows))
        for layer, key_value in enumerate(self.cache.layers):
            keys, values = (numbers_of(field, len(self.expected), rows) for field in key_value[:2])
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


CACHES = {"static": StaticCache} | ({"growing": GrowingCache} if ON_TENSORFLOW else {})


@pytest.mark.parametrize("name", CACHES)
def test_each_hypothesis_sees_its_ancestors_at_their_positions(name, monkeypatch):
    """The growing cache removes rows in every third step."""
    monkeypatch.setattr(cache, "COMPACTION_INTERVAL", 3)
    beam = RecordedBeam(CACHES[name], rows=STEPS * BEAM)
    for index in range(STEPS):
        beam.step(index)
        beam.check()
        beam.reorder()
    rows = ops.shape(beam.cache.positions(BEAM))[1]
    assert (rows < STEPS * BEAM) == (name == "growing")


@pytest.mark.skipif(not ON_TENSORFLOW, reason="XLA, and so JAX, has no tensors that grow")
def test_sentences_removed_from_a_growing_cache_leave_the_others_unchanged(monkeypatch):
    """Before and after the cache removes rows, in steps 2 and 5."""
    monkeypatch.setattr(cache, "COMPACTION_INTERVAL", 3)
    beam = RecordedBeam(GrowingCache, rows=0, batch=5)
    remaining = {1: [4, 0, 2, 3], 5: [3, 0]}
    for index in range(STEPS):
        beam.step(index)
        beam.check()
        beam.reorder()
        if index in remaining:
            beam.select(remaining[index])


def test_a_static_cache_keeps_its_rows_when_its_capacity_changes():
    beam = RecordedBeam(StaticCache, rows=4 * BEAM)
    for step in range(STEPS):
        if step == 4:
            beam.ancestors, beam.cache = beam.cache.resize(beam.ancestors, STEPS * BEAM)
            assert ops.shape(beam.cache.positions(BEAM))[1] == STEPS * BEAM
        beam.step(step)
        beam.check()
        beam.reorder()


def test_the_positions_of_a_static_cache_are_those_of_its_rows():
    beam = RecordedBeam(StaticCache, rows=3 * BEAM)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(beam.cache.positions(BEAM)), [[0, 0, 0, 1, 1, 1, 2, 2, 2]]
    )


@pytest.mark.skipif(not ON_TENSORFLOW, reason="XLA, and so JAX, has no tensors that grow")
def test_a_growing_cache_of_one_hypothesis_needs_no_mask():
    source = ops.ones((BATCH, 4), "int32")
    ancestors, opened = GrowingCache.empty(source, LAYERS, SIZE, 0).open(
        ops.zeros((BATCH, 1, 0), "bool"), ops.convert_to_tensor(0, "int32")
    )
    assert opened.mask(ancestors) is None
