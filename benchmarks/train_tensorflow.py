"""What the TensorFlow contenders share: batches through tf.data, and Keras' own training."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from train_workload import (
    BATCHES,
    BETAS,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Task,
    Work,
    batches,
)


def repeated(made: list[Any]) -> Iterator[Any]:
    """The batches, over and over, as `fit` would be given them."""
    stacked = tf.nest.map_structure(lambda *arrays: np.stack(arrays), *made)
    dataset = tf.data.Dataset.from_tensor_slices(stacked).repeat()
    return iter(dataset.prefetch(tf.data.AUTOTUNE))


def keras_task(model: keras.Model, work: Work, jit_compile: bool) -> Task:
    """Compiles a model (source, target) to logits, and trains it by the function `fit` calls."""
    beta_1, beta_2 = BETAS
    model.compile(
        optimizer=keras.optimizers.Adam(LEARNING_RATE, beta_1, beta_2, EPSILON),
        loss=smoothed_cross_entropy,
        jit_compile=jit_compile,
    )
    model.make_train_function()
    data = repeated([((batch.source, batch.target), batch.labels) for batch in batches(work)])

    def train() -> float:
        model.reset_metrics()
        for _ in range(BATCHES):
            logs = model.train_function(data)
        return float(logs["loss"])

    return Task(model.count_params(), train)


def smoothed_cross_entropy(labels, logits):
    """Keras smooths one-hot labels only; they are made here, where they cost no copy."""
    one_hot = ops.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return keras.losses.categorical_crossentropy(
        one_hot, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )
