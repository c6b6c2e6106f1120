"""Training of a Keras model like `fit`: batches from tf.data, and Keras' train function."""

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from benchmarks.harness.shapes import PAD_ID
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.workload import (
    BETAS,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Batch,
    Cell,
    batches_of,
    tokens_of,
)


def repeated(made: list[Any]) -> Iterator[Any]:
    """The batches, again and again, from a tf.data pipeline as `fit` reads it."""
    signature = tf.nest.map_structure(lambda ids: tf.TensorSpec((None, None), ids.dtype), made[0])
    if len({ids.shape for batch in made for ids in tf.nest.flatten(batch)}) == 1:
        signature = tf.nest.map_structure(tf.type_spec_from_value, made[0])
    dataset = tf.data.Dataset.from_generator(lambda: iter(made), output_signature=signature)
    return iter(dataset.cache().repeat().prefetch(tf.data.AUTOTUNE))


def keras_task(model: keras.Model, setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Compiles a model (source, target) to logits; trains it by the function that `fit` calls."""
    beta_1, beta_2 = BETAS
    model.compile(
        optimizer=keras.optimizers.Adam(LEARNING_RATE, beta_1, beta_2, EPSILON),
        loss=_SmoothedCrossEntropy(reduction="mean_with_sample_weight"),
        jit_compile=jit_compile,
    )
    model.make_train_function()
    made = batches_of(setting, cell)
    data = repeated(list(map(_with_weights if cell.is_text else _example, made)))

    def run() -> float:
        model.reset_metrics()
        for _ in made:
            logs = model.train_function(data)
        return float(logs["loss"])

    return Task(tokens_of(made), run, float, len(made), model.count_params())


def _example(batch: Batch) -> tuple:
    return (batch.source, batch.target), batch.labels


def _with_weights(batch: Batch) -> tuple:
    """Padding has the weight 0 in the loss."""
    return *_example(batch), (batch.labels != PAD_ID).astype("float32")


class _SmoothedCrossEntropy(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return smoothed_cross_entropy(y_true, y_pred)


def smoothed_cross_entropy(labels, logits):
    """Cross-entropy with label smoothing. Keras smooths only one-hot labels, so it makes them."""
    one_hot = ops.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return keras.losses.categorical_crossentropy(
        one_hot, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )
