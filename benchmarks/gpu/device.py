"""The device of a process: its name, its peak memory, and the speed of its matrix products."""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness.usage import peak_megabytes

SIZE, CPU_SIZE = 8192, 1024  # of the square matrices
REPEATS = 10


def facts(dtype: str) -> dict[str, Any]:
    """The device, the peak memory so far, and the fastest of several products.

    Args:
        dtype: of the products: bfloat16, float16 or float32.
    """
    name, peak, product = (_torch if "torch" in sys.modules else _jax)(dtype)
    return {"device": name, "peak_mb": round(peak), "product_tflops": product}


def _jax(dtype: str) -> tuple[str, float, float]:
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    peak = (device.memory_stats() or {}).get("peak_bytes_in_use", peak_megabytes() * 2**20)
    size = CPU_SIZE if device.platform == "cpu" else SIZE
    matrix = jnp.ones((size, size), dtype)
    product = jax.jit(jnp.matmul)
    tflops = _tflops(lambda: product(matrix, matrix).block_until_ready(), size)
    return device.device_kind, peak / 2**20, tflops


def _torch(dtype: str) -> tuple[str, float, float]:
    import torch

    on_gpu = torch.cuda.is_available()
    name = torch.cuda.get_device_name() if on_gpu else "cpu"
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_gpu else peak_megabytes()
    size = SIZE if on_gpu else CPU_SIZE
    matrix = torch.ones(
        (size, size), dtype=getattr(torch, dtype), device="cuda" if on_gpu else "cpu"
    )
    return name, peak, _tflops(lambda: (matrix @ matrix)[0, 0].item(), size)


def _tflops(product: Callable[[], Any], size: int) -> float:
    """Of a product that is called until it has its speed; 10¹² operations per second."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        product()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds[REPEATS // 2 :]) / 1e12
