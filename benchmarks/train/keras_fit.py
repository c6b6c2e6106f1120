"""Training of a Keras model as `fit` does it: batches from tf.data, and Keras' train function."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.workload import (
    BATCHES,
    BETAS,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Cell,
    batches,
    tokens_of,
)


def repeated(made: list[Any]) -> Iterator[Any]:
    """The batches, again and again, from a tf.data pipeline as `fit` reads it."""
    stacked = tf.nest.map_structure(lambda *arrays: np.stack(arrays), *made)
    dataset = tf.data.Dataset.from_tensor_slices(stacked).repeat()
    return iter(dataset.prefetch(tf.data.AUTOTUNE))


def keras_task(model: keras.Model, setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Compiles a model (source, target) to logits; trains it by the function that `fit` calls."""
    beta_1, beta_2 = BETAS
    model.compile(
        optimizer=keras.optimizers.Adam(LEARNING_RATE, beta_1, beta_2, EPSILON),
        loss=smoothed_cross_entropy,
        jit_compile=jit_compile,
    )
    model.make_train_function()
    made = batches(setting.shape, cell)
    data = repeated([((batch.source, batch.target), batch.labels) for batch in made])

    def run() -> float:
        model.reset_metrics()
        for _ in range(BATCHES):
            logs = model.train_function(data)
        return float(logs["loss"])

    return Task(tokens_of(cell), run, float, BATCHES, model.count_params())


def smoothed_cross_entropy(labels, logits):
    """Keras smooths one-hot labels only; they are made here, which needs no copy."""
    one_hot = ops.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return keras.losses.categorical_crossentropy(
        one_hot, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )
