"""The decoder-only model of the same shape, trained by the update that train.py makes."""

import keras
import numpy as np

from benchmarks.harness.shapes import START_ID, THREADS
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
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING
from tf_transformer.training.threads import use_threads
from tf_transformer.training.update import Updater, make_optimizer


def task(setting: Setting, cell: Cell) -> Task:
    """Trains on the targets alone."""
    micro_batches = use_threads(THREADS, False)
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    model = LanguageModel(sizes.pop("vocabulary_size"), ModelConfig(**sizes, dropout_rate=DROPOUT))
    model.build()
    beta_1, beta_2 = BETAS
    optimizer = make_optimizer(model, LEARNING_RATE, beta_1=beta_1, beta_2=beta_2, epsilon=EPSILON)
    updater = Updater(LANGUAGE_MODELING, model, optimizer, LABEL_SMOOTHING, False, micro_batches)
    before = np.full((cell.sentences, 1), START_ID, np.int32)
    made = batches(setting.shape, cell)
    data = repeated([({"before": before, "text": batch.labels},) for batch in made])

    def run() -> float:
        for _ in range(BATCHES):
            updater.update(data)
        return updater.read_metrics()["loss"]

    return Task(tokens_of(cell), run, float, BATCHES, model.count_params())
