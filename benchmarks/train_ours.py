"""This project's contender: its Transformer and the update that its own training makes."""

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
from workload import THREADS

from tf_transformer.config import ModelConfig
from tf_transformer.models.transformer import Transformer
from tf_transformer.training.learner import Learner, make_optimizer
from tf_transformer.training.strategy import use_threads


def task(work: Work, jit_compile: bool) -> Task:
    """Trains the model of this size."""
    shares = use_threads(THREADS, jit_compile)
    keras.utils.set_random_seed(1)
    sizes = work.shape._asdict()
    vocabulary_size = sizes.pop("vocabulary_size")
    transformer = Transformer(vocabulary_size, ModelConfig(**sizes, dropout_rate=DROPOUT))
    transformer.build()
    return _task(transformer, work, jit_compile, shares)


def _task(transformer: Transformer, work: Work, jit_compile: bool, shares: int) -> Task:
    """All that knows how this project trains: loss, optimizer and one update."""
    beta_1, beta_2 = BETAS
    optimizer = make_optimizer(
        transformer, LEARNING_RATE, beta_1=beta_1, beta_2=beta_2, epsilon=EPSILON
    )
    learner = Learner(transformer, optimizer, LABEL_SMOOTHING, jit_compile, shares)
    data = repeated([((batch.source, batch.labels),) for batch in batches(work)])

    def train() -> float:
        for _ in range(BATCHES):
            learner.update(data)
        return learner.figures()["loss"]

    return Task(transformer.count_params(), train)
