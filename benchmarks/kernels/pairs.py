"""Times of the plain and the tuned form of each equation, at the sizes of training and decoding."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from benchmarks.harness.results import Row
from benchmarks.kernels.timing import looped, measured, with_gradients
from tf_transformer import kernels
from tf_transformer.kernels.consistency import ConsistencyWeights
from tf_transformer.kernels.local_attention import Window

_RNG = np.random.default_rng(1)
_SEED = keras.random.SeedGenerator(1)
_EPSILON = 1e-6


class Work(NamedTuple):
    """The timed parts of a kernel.

    Attributes:
        kernel: name of a field of `Kernels`.
        work: the work in words.
        inputs: the inputs, arrays.
        call: function of the kernel and tensors; returns results.
        gradients: whether gradients are computed, too.
        jit_compile: whether XLA compiles both forms.
    """

    kernel: str
    work: str
    inputs: list[np.ndarray]
    call: Callable[..., Any]
    gradients: bool = False
    jit_compile: bool = False


def normal(*shape: int) -> np.ndarray:
    """Random numbers from the normal distribution, float32, of a shape."""
    return _RNG.normal(size=shape).astype("float32")


def works(small: bool = False) -> Iterator[Work]:
    """All works that are timed.

    Args:
        small: small sizes, for a test.
    """
    yield from _of_layers(small)
    yield from _of_losses(small)
    yield from _of_search(small)
    yield from _of_variants(small)


def _of_variants(small: bool) -> Iterator[Work]:
    """The kernels of options that are off by default."""
    heads = [normal(1, 4, 24 if small else 2048, 32) for _ in range(3)]
    window = Window(7 if small else 127, 0)
    patterns = {
        "local_attention": (window,),
        "strided_attention": (window, window.size),
        "linear_attention": (True,),
    }
    for name, options in patterns.items():

        def attend(kernel, *inputs, options=options):
            return kernel(*inputs, *options).heads

        yield Work(name, "2,048 positions of tiny", heads, attend, gradients=True)
    yield Work(
        "rms_norm",
        "update of tiny",
        [normal(2 if small else 64, 24, 128), normal(128)],
        lambda kernel, *inputs: kernel(*inputs, _EPSILON),
        gradients=True,
    )
    size = (2, 3, 128) if small else (64, 24, 128)
    gates, terms = 1 / (1 + np.exp(-normal(*size))), normal(*size)
    yield Work(
        "linear_recurrence",
        "update of tiny",
        [gates, terms],
        lambda kernel, *inputs: kernel(*inputs),
        gradients=True,
    )


def _of_layers(small: bool) -> Iterator[Work]:
    batch, tokens = (2, 3) if small else (64, 24)
    heads = [normal(batch, 4, tokens, 32) for _ in range(3)]

    def attend(kernel, query, key, value, *groups):
        return kernel(query, key, value, *groups).heads

    yield Work("attention", "update of tiny", heads, attend, gradients=True)
    step = [normal(1, 4, 1, 32), normal(1, 4, tokens, 32), normal(1, 4, tokens, 32)]
    yield Work("attention", "step of tiny, one row", step, attend)
    static = [normal(batch, 8, 4, 64), normal(8 * batch, 64, 26), normal(8 * batch, 26, 64)]
    yield Work(
        "static_attention",
        "step of base, beam 4",
        static,
        lambda kernel, *inputs: attend(kernel, *inputs, 8),
        jit_compile=True,
    )
    yield Work(
        "layer_norm",
        "update of tiny",
        [normal(batch, tokens, 128), normal(128), normal(128)],
        lambda kernel, *inputs: kernel(*inputs, _EPSILON),
        gradients=True,
    )
    yield Work(
        "dropout",
        "update of tiny",
        [normal(batch, tokens, 128)],
        lambda kernel, x: kernel(x, 0.1, _SEED),
        gradients=True,
    )
    yield Work(
        "matmul_transposed",
        "scores of an update of tiny",
        heads[:2],
        lambda kernel, *inputs: kernel(*inputs),
        gradients=True,
    )


def _of_losses(small: bool) -> Iterator[Work]:
    rows, vocabulary = (6, 64) if small else (1536, 8000)
    labels = _RNG.integers(0, vocabulary, rows, dtype="int32")
    yield Work(
        "cross_entropy",
        "update of tiny",
        [labels, normal(rows, 128), normal(vocabulary, 128) / 10],
        lambda kernel, *inputs: kernel(*inputs, 0.1).losses,
        gradients=True,
    )
    yield Work(
        "consistency",
        "update of tiny with SimCut",
        [labels, normal(rows, 128), normal(rows, 128), normal(vocabulary, 128) / 10],
        lambda kernel, *inputs: kernel(*inputs, 0.1, ConsistencyWeights(1.0, 0.0, 3.0, 0.0)).losses,
        gradients=True,
    )


def _of_search(small: bool) -> Iterator[Work]:
    logits = normal(*(2, 4, 64) if small else (32, 4, 32_000))
    totals = normal(*logits.shape[:2])
    for jit_compile in (False, True):
        yield Work(
            "top_k",
            "128 rows of base, k 8",
            [logits],
            lambda kernel, values: kernel(values, 8),
            jit_compile=jit_compile,
        )
        yield Work(
            "rank_tokens",
            "step of base, batch 32, beam 4",
            [logits, totals],
            lambda kernel, *inputs: kernel(*inputs, 8),
            jit_compile=jit_compile,
        )


def timed(work: Work) -> Row:
    """A row of the table of pairs."""
    tuned = kernels.XLA if work.jit_compile else kernels.TUNED
    loops = {}
    for name, forms in (("plain", kernels.PLAIN), ("tuned", tuned)):
        kernel = getattr(forms, work.kernel)

        def run(*inputs, kernel=kernel):
            return work.call(kernel, *inputs)

        function = with_gradients(run) if work.gradients else run
        loops[name] = looped(function, work.inputs, work.jit_compile)
    found = measured(loops)
    return {
        "kernel": work.kernel,
        "work": work.work + (", with gradients" if work.gradients else ""),
        "compiled": work.jit_compile,
        **{f"{name}_ms": round(1000 * usage.seconds, 4) for name, usage in found.items()},
        "plain_over_tuned": round(found["plain"].seconds / found["tuned"].seconds, 2),
        **{f"{name}_minor_faults": usage.minor_faults for name, usage in found.items()},
        **{
            f"{name}_system_ms": round(1000 * usage.system_seconds, 4)
            for name, usage in found.items()
        },
    }
