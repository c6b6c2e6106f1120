"""A Transformer of Keras' layers, as in Keras' examples."""

import math

import keras
from keras import layers, ops

from benchmarks.harness.shapes import PAD_ID, Shape
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.keras_fit import keras_task
from benchmarks.train.workload import DROPOUT, Cell, sinusoids


def task(setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Trains the model of this shape."""
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(cell.policy)
    return keras_task(_model(setting.shape, cell), setting, cell, jit_compile)


def _model(shape: Shape, cell: Cell) -> keras.Model:
    embedding = layers.ReversibleEmbedding(
        shape.vocabulary_size,
        shape.d_model,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=shape.d_model**-0.5),
    )
    positions = _Positions(shape, cell.tokens)

    def embedded(ids):
        return layers.Dropout(DROPOUT)(embedding(ids) * math.sqrt(shape.d_model) + positions(ids))

    tokens = None if cell.is_text else cell.tokens
    source, target = (keras.Input((tokens,), dtype="int32") for _ in range(2))
    mask = ops.not_equal(source, PAD_ID)[:, None] if cell.is_text else None
    memory, x = embedded(source), embedded(target)
    for _ in range(shape.num_layers):
        memory = _added(memory, _attention(shape)(memory, memory, attention_mask=mask))
        memory = _added(memory, _feed_forward(memory, shape))
    for _ in range(shape.num_layers):
        x = _added(x, _attention(shape)(x, x, use_causal_mask=True))
        x = _added(x, _attention(shape)(x, memory, attention_mask=mask))
        x = _added(x, _feed_forward(x, shape))
    return keras.Model((source, target), embedding(x, reverse=True))


class _Positions(layers.Layer):
    """Sinusoids (T, D) for ids (B, T)."""

    def __init__(self, shape: Shape, tokens: int):
        super().__init__()
        self.table = sinusoids(shape, tokens)

    def call(self, ids):
        return ops.convert_to_tensor(self.table)[: ops.shape(ids)[1]]


def _attention(shape: Shape) -> layers.MultiHeadAttention:
    return layers.MultiHeadAttention(
        shape.num_heads, shape.d_model // shape.num_heads, use_bias=False
    )


def _feed_forward(x, shape: Shape):
    return layers.Dense(shape.d_model)(layers.Dense(shape.d_ff, activation="relu")(x))


def _added(x, output):
    return layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(DROPOUT)(output))
