"""Functions with their own gradient, where it is cheaper than automatic differentiation."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras import KerasTensor, ops, tree

WithGradient = tuple[Any, Callable[..., Any]]
"""Outputs, and the function from their gradients to gradients of the inputs."""

_are_in_use = True


@contextlib.contextmanager
def without_own_gradients() -> Iterator[None]:
    """Functions traced in this context, in all threads, get no gradient of their own.

    TensorFlow marks a function with its own gradient by nodes that refer to code in this process.
    A SavedModel with such nodes cannot be saved again after it was loaded.
    """
    global _are_in_use
    before, _are_in_use = _are_in_use, False
    try:
        yield
    finally:
        _are_in_use = before


def with_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient` with one interface for every Keras backend.

    The function takes tensors and returns (outputs, gradient). `gradient` receives the gradient of
    each output, in order, and returns one gradient for each input tensor. Keras' torch backend
    takes functions of one output only. There, torch differentiates instead.

    Example:
        >>> @with_gradient
        ... def square(x):
        ...     return x * x, lambda upstream: 2.0 * x * upstream
        >>> float(square(np.float32(3.0)))
        9.0
    """

    def value(*arguments: KerasTensor) -> Any:
        return function(*arguments)[0]

    if keras.backend.backend() == "torch":
        return value

    def on_any_backend(*arguments: KerasTensor) -> WithGradient:
        outputs, gradient = function(*arguments)

        def gradient_of(*upstreams: Any, upstream: Any = None) -> Any:
            # Backends pass one array for each output, one tuple of arrays, or a keyword argument.
            return gradient(*tree.flatten(upstreams if upstream is None else upstream))

        return outputs, gradient_of

    with_own_gradient = ops.custom_gradient(on_any_backend)
    return lambda *arguments: (with_own_gradient if _are_in_use else value)(*arguments)


def silu(x: KerasTensor) -> KerasTensor:
    """The product x σ(x); in `without_own_gradients`, without TensorFlow's own gradient."""
    return ops.silu(x) if _are_in_use else x * ops.sigmoid(x)


def plain_matmul_transposed(a: KerasTensor, b: KerasTensor) -> KerasTensor:
    """The product a bᵀ: (..., M, K) by (..., N, K) to (..., M, N), with the same leading axes."""
    return ops.matmul(a, ops.swapaxes(b, -1, -2))


@with_gradient
def matmul_transposed(a: KerasTensor, b: KerasTensor) -> WithGradient:
    """`plain_matmul_transposed` with its own gradient.

    Automatic differentiation would compute the gradient of bᵀ and transpose it.
    """

    def gradient(upstream: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        return ops.matmul(upstream, b), ops.matmul(ops.swapaxes(upstream, -1, -2), a)

    return plain_matmul_transposed(a, b), gradient
