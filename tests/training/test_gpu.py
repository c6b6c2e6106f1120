"""Training on GPUs: `pytest -m gpu` where TensorFlow has them."""

import math

import pytest
import tensorflow as tf
from conftest import small_config

from tf_transformer.run.run import Run
from tf_transformer.training import trainer

pytestmark = pytest.mark.gpu
OPTIONS = {"steps": 8, "validate_every": 4, "precision": "float32"}


def trained(folder, **options) -> dict[str, float]:
    """The metrics of the last validation."""
    return trainer.train(Run.at(folder, small_config(**(OPTIONS | options)))).metrics


@pytest.fixture
def gpus() -> int:
    count = len(tf.config.list_logical_devices("GPU"))
    if not count:
        pytest.skip("needs a GPU that TensorFlow can use")
    return count


def test_a_gpu_trains_as_the_cpu_does(gpus, tmp_path):
    on_gpu = trained(tmp_path / "gpu", strategy="one")
    with tf.device("CPU"):
        on_cpu = trained(tmp_path / "cpu", strategy="one")
    assert on_gpu["val_loss"] == pytest.approx(on_cpu["val_loss"], rel=0.02)  # other dropout


def test_two_gpus_train_as_one_does(gpus, tmp_path):
    if gpus < 2:
        pytest.skip("needs two GPUs")
    one, two = (trained(tmp_path / name, strategy=name) for name in ("one", "mirrored"))
    assert two["val_loss"] == pytest.approx(one["val_loss"], rel=0.02)


@pytest.mark.parametrize("strategy", ["one", "mirrored"])
@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_trains(gpus, tmp_path, strategy, precision):
    metrics = trained(tmp_path, strategy=strategy, precision=precision, steps=40)
    assert math.isfinite(metrics["val_loss"])
    assert metrics["loss"] < 5.5  # ln(320) is 5.77
