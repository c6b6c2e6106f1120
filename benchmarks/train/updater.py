"""This project's Transformer, trained by the update that train.py makes."""

import keras

from benchmarks.harness.shapes import THREADS
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.keras_fit import repeated
from benchmarks.train.workload import (
    BETAS,
    DROPOUT,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Cell,
    batches_of,
    tokens_of,
)
from tf_transformer.config import ModelConfig, TrainConfig
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.models.transformer import Transformer
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.training.setup import possible_executions
from tf_transformer.training.update import Updater, make_optimizer


def task(setting: Setting, cell: Cell, jit_compile: bool) -> Task:
    """Trains the model of this shape."""
    execution = possible_executions(TrainConfig(threads=THREADS, jit_compile=jit_compile))[0]
    execution.use_threads(THREADS)
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    vocabulary_size = sizes.pop("vocabulary_size")
    config = ModelConfig(**sizes, dropout_rate=DROPOUT)
    model = Transformer(vocabulary_size, config, dtype=cell.policy)
    model.build()
    beta_1, beta_2 = BETAS
    optimizer = make_optimizer(model, LEARNING_RATE, beta_1=beta_1, beta_2=beta_2, epsilon=EPSILON)
    updater = Updater(TRANSLATION, model, optimizer, CrossEntropy(LABEL_SMOOTHING), *execution)
    made = batches_of(setting, cell)
    data = repeated([({"source": batch.source, "target": batch.labels},) for batch in made])

    def run() -> float:
        for _ in made:
            updater.update(data)
        return updater.read_metrics()["loss"]

    return Task(tokens_of(made), run, float, len(made), model.count_params())
