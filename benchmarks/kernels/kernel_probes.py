"""Probes of thresholds: attention of few queries, blocks of top-k, matrices of int8 numbers."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.kernels.pairs import normal
from benchmarks.kernels.probe import ALWAYS, NEVER, MakeLoop, Probe, forced
from benchmarks.kernels.timing import Loop, looped
from tf_transformer import kernels
from tf_transformer.inference.onednn import OneDnnPolicy
from tf_transformer.inference.step_products import for_steps
from tf_transformer.kernels import top_k
from tf_transformer.layers.dense import Dense
from tf_transformer.machine import thresholds

_K = 8
_HEADS, _SIZE = 8, 64  # of base


def probes(small: bool = False) -> Iterator[Probe]:
    """All probes of kernels.

    Args:
        small: one small size of each probe, for a test.
    """
    rows = 2 if small else 128
    yield from _few_queries(small)
    yield from _largest_block(rows, 256 if small else 32_000)
    yield from _smallest_block(rows, (16,) if small else (8, 16, 32))
    yield from _blocks_per_result(rows, (4,) if small else (2, 4, 8))
    yield from _sorts_without_blocks(rows, (0.25,) if small else (0.5, 1, 2, 4))
    yield from _smallest_int8_matrix((1,) if small else (1, 4, 32), (64,) if small else (256, 512))


def _attention(queries: int, rows: int) -> MakeLoop:
    """Attention of a decoding step with a number of rows that is unknown to TensorFlow."""
    sizes = [(1, _HEADS, length, _SIZE) for length in (queries, rows, rows)]
    inputs = [normal(*size) for size in sizes]

    def attend(query: tf.Tensor, *cached: tf.Tensor) -> tf.Tensor:
        shape = (1, _HEADS, None, _SIZE)
        key, value = (tf.compat.v1.placeholder_with_default(x, shape) for x in cached)
        return for_steps().attention(query, key, value).heads

    return lambda: looped(attend, inputs)


_QUERIES = {"each query alone": ALWAYS, "together": NEVER}


def _few_queries(small: bool) -> Iterator[Probe]:
    name, limit = "FEW_QUERIES", thresholds.FEW_QUERIES
    for queries in (2,) if small else (limit // 2, limit, 2 * limit):
        chosen = "each query alone" if queries <= limit else "together"
        sides = forced("kernels.attention", name, _QUERIES, _attention(queries, 24))
        yield Probe(name, f"{queries} queries, 24 rows", chosen, sides)


def _top_k(values: np.ndarray, jit_compile: bool = False) -> MakeLoop:
    kernel = (kernels.XLA if jit_compile else kernels.TUNED).top_k
    return lambda: looped(lambda x: kernel(x, _K), [values], jit_compile)


def _largest_block(rows: int, size: int) -> Iterator[Probe]:
    name, limit = "LARGEST_BLOCK", thresholds.LARGEST_BLOCK
    values = normal(rows, size)
    blocks = {str(block): block for block in (limit // 2, limit, 2 * limit, 4 * limit)}
    for jit_compile, how in ((False, ""), (True, ", compiled")):
        sides = forced("machine.thresholds", name, blocks, _top_k(values, jit_compile))
        yield Probe(name, f"{rows} rows of {size:,}, k {_K}{how}", str(limit), sides)


def _smallest_block(rows: int, blocks: tuple[int, ...]) -> Iterator[Probe]:
    """Rows with the smallest number of blocks for which blocks are used; several block sizes."""
    name, count = "SMALLEST_BLOCK", thresholds.BLOCKS_PER_RESULT * _K
    one_sort = thresholds.LARGEST_BLOCK + 1
    for block in blocks:
        chosen = "blocks" if block >= thresholds.SMALLEST_BLOCK else "one sort"
        make = _top_k(normal(rows, block * count))
        sides = forced("machine.thresholds", name, {"blocks": 1, "one sort": one_sort}, make)
        yield Probe(name, f"{rows} rows of {count} blocks of {block}, k {_K}", chosen, sides)


def _blocks_per_result(rows: int, numbers: tuple[int, ...]) -> Iterator[Probe]:
    """Rows of a few large blocks, which may be divided into more and smaller blocks."""
    name, limit = "BLOCKS_PER_RESULT", thresholds.BLOCKS_PER_RESULT
    values = {str(number): number for number in (limit // 2, limit, 2 * limit)}
    for number in numbers:
        size = thresholds.LARGEST_BLOCK * number * _K
        sides = forced("machine.thresholds", name, values, _top_k(normal(rows, size)))
        yield Probe(name, f"{rows} rows of {size:,}, k {_K}", str(limit), sides)


def _sorts_without_blocks(rows: int, factors: tuple[float, ...]) -> Iterator[Probe]:
    name, limit = "XLA_SORTS_WITHOUT_BLOCKS", thresholds.XLA_SORTS_WITHOUT_BLOCKS
    for factor in factors:
        size = int(factor * limit)
        chosen = "one sort" if factor <= 1 else "blocks"
        make = _compiled_sort(normal(rows, size))
        sides = forced("machine.thresholds", name, {"one sort": ALWAYS, "blocks": NEVER}, make)
        yield Probe(name, f"{rows} rows of {size:,}, k {_K}, compiled", chosen, sides)


def _smallest_int8_matrix(rows: Iterable[int], sizes: Sequence[int]) -> Iterator[Probe]:
    name, limit = "SMALLEST_INT8_MATRIX", thresholds.SMALLEST_INT8_MATRIX
    for count, size in itertools.product(rows, sizes):
        chosen = "int8" if size**2 >= limit else "float32"
        make = _dense(normal(count, size))
        sides = forced("layers.int8", name, {"int8": NEVER, "float32": ALWAYS}, make)
        yield Probe(name, f"{count} rows, {size} × {size}", chosen, sides)


def _dense(rows: np.ndarray) -> MakeLoop:
    def make() -> Loop:
        layer = Dense(rows.shape[1], dtype=OneDnnPolicy())
        layer.build(rows.shape)
        return looped(layer, [rows])

    return make


def _compiled_sort(values: np.ndarray) -> MakeLoop:
    def sort(x: tf.Tensor) -> Any:
        return top_k._sort(x, _K, xla=True)

    def make() -> Loop:
        return looped(sort, [values], jit_compile=True)

    return make
