"""A Transformer of Keras' own layers, put together as its users do."""

import math

import keras
from keras import layers
from train_tensorflow import keras_task
from train_workload import DROPOUT, Task, Work, sinusoids
from workload import Shape


def task(work: Work, jit_compile: bool) -> Task:
    """Trains the model of this size."""
    keras.utils.set_random_seed(1)
    return keras_task(_model(work), work, jit_compile)


def _model(work: Work) -> keras.Model:
    shape = work.shape
    embedding = layers.ReversibleEmbedding(
        shape.vocabulary_size,
        shape.d_model,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=shape.d_model**-0.5),
    )
    positions = sinusoids(work)

    def embedded(ids):
        return layers.Dropout(DROPOUT)(embedding(ids) * math.sqrt(shape.d_model) + positions)

    source, target = (keras.Input((work.tokens,), dtype="int32") for _ in range(2))
    memory, x = embedded(source), embedded(target)
    for _ in range(shape.num_layers):
        memory = _added(memory, _attention(shape)(memory, memory))
        memory = _added(memory, _feed_forward(memory, shape))
    for _ in range(shape.num_layers):
        x = _added(x, _attention(shape)(x, x, use_causal_mask=True))
        x = _added(x, _attention(shape)(x, memory))
        x = _added(x, _feed_forward(x, shape))
    return keras.Model((source, target), embedding(x, reverse=True))


def _attention(shape: Shape) -> layers.MultiHeadAttention:
    return layers.MultiHeadAttention(
        shape.num_heads, shape.d_model // shape.num_heads, use_bias=False
    )


def _feed_forward(x, shape: Shape):
    return layers.Dense(shape.d_model)(layers.Dense(shape.d_ff, activation="relu")(x))


def _added(x, output):
    return layers.LayerNormalization(epsilon=1e-6)(x + layers.Dropout(DROPOUT)(output))
