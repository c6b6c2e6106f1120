"""Layer normalization (Ba et al. 2016; paper section 3.1), and RMSNorm (Zhang & Sennrich 2019)."""

from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import WithGradient, with_gradient


def plain_layer_norm(
    x: KerasTensor, gamma: KerasTensor, beta: KerasTensor, epsilon: float
) -> KerasTensor:
    """(x - mean) / √(variance + ε) · γ + β over the last axis of x (..., D), with γ and β (D,).

    Example:
        >>> x, ones = np.array([[1.0, 3.0]], "float32"), np.ones(2, "float32")
        >>> np.asarray(plain_layer_norm(x, ones, 0 * ones, 1e-6)).round(3).tolist()
        [[-1.0, 1.0]]
    """
    mean = ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) / ops.sqrt(variance + epsilon) * gamma + beta


def layer_norm(
    x: KerasTensor, gamma: KerasTensor, beta: KerasTensor, epsilon: float
) -> KerasTensor:
    """`plain_layer_norm` with its own gradient, which passes over x fewer times."""

    @with_gradient
    def normalize(x: KerasTensor, gamma: KerasTensor, beta: KerasTensor) -> WithGradient:
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(centred * centred, axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + epsilon)  # (..., 1)
        unit = centred * scale  # mean 0, variance 1

        def gradient(upstream: KerasTensor) -> tuple[KerasTensor, ...]:
            by_unit = upstream * gamma
            # Adding a number to all elements, or scaling all of them, leaves the output as it is.
            shift = ops.mean(by_unit, axis=-1, keepdims=True)
            stretch = ops.mean(by_unit * unit, axis=-1, keepdims=True)
            by_x = (by_unit - shift - unit * stretch) * scale
            return by_x, _sum_of_rows(upstream * unit), _sum_of_rows(upstream)

        return unit * gamma + beta, gradient

    return normalize(x, gamma, beta)


def plain_rms_norm(x: KerasTensor, gamma: KerasTensor, epsilon: float) -> KerasTensor:
    """RMSNorm(x) = x / √(mean(x²) + ε) · γ over the last axis of x (..., D), with γ (D,)."""
    return x / ops.sqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + epsilon) * gamma


def rms_norm(x: KerasTensor, gamma: KerasTensor, epsilon: float) -> KerasTensor:
    """`plain_rms_norm` with its own gradient, as in `layer_norm`."""

    @with_gradient
    def normalize(x: KerasTensor, gamma: KerasTensor) -> WithGradient:
        scale = ops.rsqrt(ops.mean(x * x, axis=-1, keepdims=True) + epsilon)  # (..., 1)
        unit = x * scale

        def gradient(upstream: KerasTensor) -> tuple[KerasTensor, ...]:
            by_unit = upstream * gamma
            stretch = ops.mean(by_unit * unit, axis=-1, keepdims=True)
            return (by_unit - unit * stretch) * scale, _sum_of_rows(upstream * unit)

        return unit * gamma, gradient

    return normalize(x, gamma)


def _sum_of_rows(x: KerasTensor) -> KerasTensor:
    return ops.sum(ops.reshape(x, (-1, x.shape[-1])), axis=0)  # (D,)
