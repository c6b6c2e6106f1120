"""The systems that train on a GPU."""

from benchmarks.harness.systems import System
from benchmarks.train.workload import Cell

__all__ = ["OURS", "SYSTEMS", "Cell"]

JAX = {"KERAS_BACKEND": "jax"}
_TORCH = "benchmarks.train.torch_transformer:task"
SYSTEMS = {
    "tf_transformer_jax": System("benchmarks.gpu.jax_updater:task", ("jax",), JAX),
    "flax": System("benchmarks.train.flax_transformer:task", ("jax", "flax", "optax"), JAX),
    "torch": System(_TORCH, ("torch",), {}, {"compiled": False}),
    "torch_compile": System(_TORCH, ("torch",), {}, {"compiled": True}),
}
OURS = {"tf_transformer_jax"}
