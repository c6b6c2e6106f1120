"""This project's contender: its Transformer and the update that its own training makes."""

from collections.abc import Callable
from typing import cast

import keras
from train_tensorflow import repeated
from train_workload import (
    BATCHES,
    BETAS,
    DROPOUT,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Task,
    Work,
    batches,
)

from tf_transformer.config import ModelConfig
from tf_transformer.model import Transformer
from tf_transformer.training.training_model import TrainingModel


def task(work: Work, jit_compile: bool) -> Task:
    """Trains the model of this size."""
    keras.utils.set_random_seed(1)
    sizes = work.shape._asdict()
    vocabulary_size = sizes.pop("vocabulary_size")
    transformer = Transformer(vocabulary_size, ModelConfig(**sizes, dropout_rate=DROPOUT))
    transformer.build()
    return _task(transformer, work, jit_compile)


def _task(transformer: Transformer, work: Work, jit_compile: bool) -> Task:
    """All that knows how this project trains: loss, optimizer and one update."""
    model = TrainingModel(transformer, LABEL_SMOOTHING, jit_compile)
    beta_1, beta_2 = BETAS
    model.compile(keras.optimizers.Adam(LEARNING_RATE, beta_1, beta_2, EPSILON))
    model.optimizer.build(transformer.trainable_variables)
    model.make_train_function()
    update = cast(Callable, model.train_function)
    data = repeated([(batch.source, batch.labels) for batch in batches(work)])

    def train() -> float:
        model.reset_metrics()
        for _ in range(BATCHES):
            logs = update(data)
        return float(logs["loss"])

    return Task(transformer.count_params(), train)
