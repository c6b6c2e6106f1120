"""This project's Transformer, trained by the update that train.py makes."""

import keras
from tf_transformer.training.learner import Learner, make_optimizer

from benchmarks.harness.shapes import THREADS
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.keras_fit import repeated
from benchmarks.train.workload import (
    BATCHES,
    BETAS,
    DROPOUT,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Cell,
    batches,
    tokens_of,
)
from tf_transformer.config import ModelConfig
from tf_transformer.models.transformer import Transformer
from tf_transformer.training.strategy import use_threads


def task(setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Trains the model of this shape."""
    shares = use_threads(THREADS, jit_compile)
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    vocabulary_size = sizes.pop("vocabulary_size")
    model = Transformer(vocabulary_size, ModelConfig(**sizes, dropout_rate=DROPOUT))
    model.build()
    beta_1, beta_2 = BETAS
    optimizer = make_optimizer(model, LEARNING_RATE, beta_1=beta_1, beta_2=beta_2, epsilon=EPSILON)
    learner = Learner(model, optimizer, LABEL_SMOOTHING, jit_compile, shares)
    made = batches(setting.shape, cell)
    data = repeated([((batch.source, batch.labels),) for batch in made])

    def run() -> float:
        for _ in range(BATCHES):
            learner.update(data)
        return learner.figures()["loss"]

    return Task(tokens_of(cell), run, float, BATCHES, model.count_params())
