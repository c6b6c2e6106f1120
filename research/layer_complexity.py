"""Measures Table 1 of the paper: cost of four kinds of layers, and the paths between positions.

    KERAS_BACKEND=jax python -m research.layer_complexity \
        --output research/results/layer_complexity.json

A layer maps n vectors of size d to n vectors of size d: self-attention, self-attention restricted
to r neighbours, a recurrent layer, and a convolution of width k. Time and memory are those of a
forward and a backward pass, compiled by JAX, which states the memory of a compiled function. One
size changes at a time; the exponent is the slope of the line through the logarithms. The exponents
of the paper count multiplications.

The maximum path length is the number of elementary operations between the two positions that are
farthest apart. It is the diameter of a graph, with an edge from position j to position i where one
operation of the layer lets i depend on j; the edges are those of a Jacobian.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.kernels.attention import plain_attention
from tf_transformer.kernels.local_attention import Window, local_attention

REPEATS = 5


class Sizes(NamedTuple):
    """The sizes of a layer, as Table 1 names them."""

    n: int = 1024  # positions
    d: int = 128  # size of a vector
    r: int = 64  # neighbours of restricted self-attention
    k: int = 5  # width of a convolution


def self_attention(x, weights, sizes: Sizes):
    """Every position attends to every position."""
    return plain_attention(*[x[:, None]] * 3).heads[:, 0]


def restricted_attention(x, weights, sizes: Sizes):
    """Every position attends to r neighbours."""
    window = Window(sizes.r // 2, sizes.r - sizes.r // 2 - 1)
    return local_attention(*[x[:, None]] * 3, window).heads[:, 0]


def recurrence(x, weights, sizes: Sizes):
    """hᵢ = tanh(W hᵢ₋₁ + xᵢ), one position after the other."""

    def step(state, x_i):
        state = ops.tanh(ops.matmul(state, weights[0]) + x_i)
        return state, state

    _, states = ops.scan(step, ops.zeros_like(x[:, 0]), ops.swapaxes(x, 0, 1))
    return ops.swapaxes(states, 0, 1)


def convolution(x, weights, sizes: Sizes):
    """A position depends on k neighbours, with a matrix for each."""
    return ops.conv(x, weights, padding="same")


class Layer(NamedTuple):
    """A kind of layer with its row of Table 1."""

    compute: Callable
    exponents: dict[str, int]  # of the time in the paper, by size
    path: str  # the maximum path length in the paper


LAYERS = {
    "self-attention": Layer(self_attention, {"n": 2, "d": 1}, "O(1)"),
    "recurrent": Layer(recurrence, {"n": 1, "d": 2}, "O(n)"),
    "convolutional": Layer(convolution, {"n": 1, "d": 2, "k": 1}, "O(n/k)"),
    "self-attention (restricted)": Layer(restricted_attention, {"n": 1, "d": 1, "r": 1}, "O(n/r)"),
}
# The smallest value of each size; the next ones are twice the one before. The others keep their
# defaults meanwhile.
SMALLEST = Sizes(n=512, d=64, r=64, k=3)
PATHS = (16, 32, 64)  # positions of the graphs
PATH_SIZES = Sizes(d=4, r=9, k=5)


def main(points: int = 4, output: str = "") -> None:
    """Prints time, memory and path length of each kind of layer, with the fitted exponents.

    Args:
        points: number of values of each size.
        output: result file to write, for example research/results/layer_complexity.json.
    """
    if keras.backend.backend() != "jax":
        raise InputError("set KERAS_BACKEND=jax: JAX states the memory of a compiled function.")
    rows = [
        measured(name, Sizes()._replace(**{size: getattr(SMALLEST, size) * 2**point}))
        | {"changed": size}
        for name, layer in LAYERS.items()
        for size in layer.exponents
        for point in range(points)
    ]
    fitted = [fit(name, size, rows) for name, layer in LAYERS.items() for size in layer.exponents]
    paths = [
        {"layer": name, "path in the paper": layer.path}
        | {f"n = {n}": path_length(layer.compute, PATH_SIZES._replace(n=n)) for n in PATHS}
        for name, layer in LAYERS.items()
    ]
    print(of_rows(fitted, left=2), of_rows(paths, left=2), sep="\n\n")
    results.save(output, rows, ("jax", "keras"), fitted=fitted, paths=paths)


def measured(name: str, sizes: Sizes) -> dict[str, Any]:
    """The time and memory of a forward and a backward pass."""
    import jax

    random = np.random.default_rng(1)
    x = random.normal(size=(1, sizes.n, sizes.d)).astype("float32")
    matrices = sizes.k if name == "convolutional" else 1
    scale = 1 / math.sqrt(matrices * sizes.d)
    weights = random.normal(0, scale, (matrices, sizes.d, sizes.d)).astype("float32")

    def total(x, weights):
        return ops.sum(ops.square(LAYERS[name].compute(x, weights, sizes)))

    compiled = jax.jit(jax.grad(total, (0, 1))).lower(x, weights).compile()
    jax.block_until_ready(compiled(x, weights))
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(compiled(x, weights))
        seconds.append(time.perf_counter() - start)
    memory = compiled.memory_analysis().temp_size_in_bytes
    row = {"layer": name, **sizes._asdict(), "seconds": min(seconds), "memory_mb": memory / 1e6}
    print(f"{name}: {row}", file=sys.stderr)
    return row


def fit(name: str, size: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The exponents of a size, by least squares on the logarithms."""
    points = [row for row in rows if row["layer"] == name and row["changed"] == size]

    def exponent(field: str) -> float:
        logarithms = np.log([[row[size], row[field]] for row in points])
        return round(float(np.polyfit(*logarithms.T, 1)[0]), 2)

    return {
        "layer": name,
        "size": size,
        "exponent in the paper": LAYERS[name].exponents[size],
        "exponent of time": exponent("seconds"),
        "exponent of memory": exponent("memory_mb"),
    }


def path_length(compute: Callable, sizes: Sizes) -> int:
    """The largest number of operations on the shortest path between two positions."""
    edges = dependencies(compute, sizes)
    reached, steps = np.eye(sizes.n, dtype=bool), 0
    while not reached.all():
        new = (edges.astype(int) @ reached.astype(int)) > 0
        if (new | reached == reached).all():  # a recurrent layer never looks ahead
            reached |= ~np.tri(sizes.n, dtype=bool)
            continue
        reached, steps = reached | new, steps + 1
    return steps


def dependencies(compute: Callable, sizes: Sizes) -> np.ndarray:
    """Bool (n, n): whether one operation lets position i depend on position j.

    An operation of a recurrent layer is a step, from the state of position i - 1 to that of i. Of
    the other layers it is the whole layer.
    """
    import jax

    random = np.random.default_rng(1)
    x = random.normal(size=(sizes.n, sizes.d)).astype("float32")
    matrices = random.normal(size=(sizes.k, sizes.d, sizes.d)).astype("float32")
    if compute is recurrence:

        def apply(x):
            before = ops.concatenate([ops.zeros_like(x[:1]), x[:-1]])
            return ops.tanh(ops.matmul(before, matrices[0]))

    else:

        def apply(x):
            return compute(x[None], matrices, sizes)[0]

    jacobian = np.asarray(jax.jit(jax.jacobian(apply))(x))  # (n, d, n, d)
    return np.abs(jacobian).max(axis=(1, 3)) > 0


if __name__ == "__main__":
    command_line.run(main)
