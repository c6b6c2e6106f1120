"""Functions that know their own gradient, where it is cheaper than the one derived for them."""

from collections.abc import Callable

from keras import KerasTensor, ops, tree


def with_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient`, whichever way the backend hands gradients over.

    Args:
        function: from tensors to (outputs, gradient). `gradient` is given the gradient of each
            output, in their order, and returns one a tensor that `function` was given.

    Returns:
        function from the same tensors to the outputs alone.

    Example:
        >>> @with_gradient
        ... def square(x):
        ...     return x * x, lambda upstream: 2.0 * x * upstream
        >>> float(square(np.float32(3.0)))
        9.0
    """

    def on_any_backend(*arguments):
        outputs, gradient = function(*arguments)

        def gradient_of(*upstreams, upstream=None):
            # One array an output, or one tuple of them, or by name.
            return gradient(*tree.flatten(upstreams if upstream is None else upstream))

        return outputs, gradient_of

    return ops.custom_gradient(on_any_backend)


@with_gradient
def times_transposed(a: KerasTensor, b: KerasTensor) -> KerasTensor:
    """The product a · bᵀ, whose derived gradient would be one of bᵀ and be transposed back.

    Args:
        a: float tensor (..., M, K).
        b: float tensor (..., N, K), with the same leading axes.

    Returns:
        float tensor (..., M, N).
    """

    def gradient(upstream):
        return ops.matmul(upstream, b), ops.matmul(_transposed(upstream), a)

    return ops.matmul(a, _transposed(b)), gradient


def _transposed(x: KerasTensor) -> KerasTensor:
    return ops.swapaxes(x, -1, -2)
