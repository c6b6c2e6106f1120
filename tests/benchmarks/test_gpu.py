"""benchmarks/gpu: the operations of an update, ratios, and training on Keras' JAX backend."""

import keras
import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.harness.shapes import Shape
from benchmarks.harness.tasks import Setting
from benchmarks.train import workload
from benchmarks.train.workload import Cell

SMALL = Shape(1, 16, 32, 2, 50)


def test_operations_are_those_of_all_products():
    """By hand, for one sentence of two tokens: multiply-adds of forward passes, times 2 · 3.

    Encoder 2 · (4 · 256 + 2 · 512), decoder 2 · (8 · 256 + 2 · 512), scores and values of three
    attentions 3 · 2 · 2 · 2 · 16, logits 2 · 50 · 16.
    """
    expected = 6 * (2 * 2048 + 2 * 3072 + 384 + 1600)
    assert command.operations(SMALL, Cell(1, 2)) == expected


def test_speeds_are_compared_with_other_systems_of_the_shape():
    rows = [
        {"shape": "base", "system": "tf_transformer_jax", "tokens_per_second": 300.0},
        {"shape": "base", "system": "torch", "tokens_per_second": 200.0},
        {"shape": "base", "system": "flax", "tokens_per_second": 150.0},
        {"shape": "big", "system": "torch", "tokens_per_second": 900.0},
    ]
    rows = [row | {"product_tflops": 0.5} for row in rows]
    found = command.compared(rows, Cell(1, 2))
    assert [row["ratio_to_fastest_other"] for row in found] == [1.5, 1, 0.75, 1]
    assert found[0]["utilization"] == pytest.approx(2 * found[2]["utilization"], abs=1e-3)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="a system of Keras' JAX backend")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_our_model_trains_on_jax(dtype, tmp_path):
    """Untrained weights on 50 ids: the loss starts near ln 50 and falls."""
    from benchmarks.gpu import jax_updater

    task = jax_updater.task(Setting(SMALL, tmp_path, tmp_path), Cell(3, 5, dtype))
    assert task.parameters == workload.parameters(SMALL)
    losses = [task.check(task.run()) for _ in range(30)]
    workload.check_losses(losses, 50)
