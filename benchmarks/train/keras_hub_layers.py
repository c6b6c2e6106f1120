"""A Transformer of KerasHub's encoder and decoder layers.

These layers have biases in attention (0.1% more parameters), and one dropout rate, also for
attention weights.
"""

import math

import keras
from keras_hub import layers

from benchmarks.harness.shapes import Shape
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.keras_fit import keras_task
from benchmarks.train.workload import DROPOUT, Cell


def task(setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Trains the model of this shape."""
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(cell.policy)
    return keras_task(_model(setting.shape, cell.tokens), setting, cell, jit_compile)


def _model(shape: Shape, tokens: int) -> keras.Model:
    # TokenAndPositionEmbedding learns its positions; with sinusoids, these two take its place.
    embedding = layers.ReversibleEmbedding(
        shape.vocabulary_size,
        shape.d_model,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=shape.d_model**-0.5),
    )
    positions = layers.SinePositionEncoding()

    def embedded(ids):
        x = embedding(ids) * math.sqrt(shape.d_model)
        return keras.layers.Dropout(DROPOUT)(x + positions(x))

    sizes = (shape.d_ff, shape.num_heads, DROPOUT)
    source, target = (keras.Input((tokens,), dtype="int32") for _ in range(2))
    memory, x = embedded(source), embedded(target)
    for _ in range(shape.num_layers):
        memory = layers.TransformerEncoder(*sizes)(memory)
    for _ in range(shape.num_layers):
        x = layers.TransformerDecoder(*sizes)(x, memory)
    return keras.Model((source, target), embedding(x, reverse=True))
