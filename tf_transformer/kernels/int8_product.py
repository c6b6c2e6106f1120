"""The product x Wᵀ of int8 numbers, for inference.

Each row of x and of W has a scale, the value of 1. The numbers of x are at most 127, those of W at
most 64. Processors without instructions for int8 products add pairs of products in 16 bits after
they have shifted x to 0 … 255, so larger numbers of W would overflow there: 2 · 255 · 64 < 2¹⁵.
"""

from keras import KerasTensor, ops

LARGEST_INPUT = 127
LARGEST_WEIGHT = 64
SMALLEST = 1e-30  # of the largest numbers of a row, so that a row of zeros has a scale


def quantize(rows: KerasTensor, largest: int) -> tuple[KerasTensor, KerasTensor]:
    """Divides each row by a scale, and rounds it to integers of at most `largest`.

    Args:
        rows: float32 tensor (R, K).
        largest: the largest integer, at most 127.

    Returns:
        the integers, int8 (R, K); and the scales, float32 (R, 1).
    """
    most = ops.maximum(ops.max(ops.abs(rows), axis=-1, keepdims=True), SMALLEST)
    # TensorFlow multiplies up to four times as fast as it divides.
    return ops.cast(ops.round(rows * (largest / most)), "int8"), most * (1 / largest)


def plain_int8_product(
    rows: KerasTensor, weights: KerasTensor, highest: KerasTensor
) -> KerasTensor:
    """The product of x, which is quantized here, and of W, which is quantized already.

    The sums of integers are exact. So a row of the result depends on its row of x alone.

    Args:
        rows: float32 tensor (R, K), x.
        weights: int8 tensor (N, K), W divided by the scales of its rows.
        highest: float32 tensor (N,): 127 scales of W. oneDNN describes scales by a range.

    Returns:
        float32 tensor (R, N).
    """
    numbers, scales = quantize(rows, LARGEST_INPUT)
    sums = ops.matmul(ops.cast(numbers, "int32"), ops.transpose(ops.cast(weights, "int32")))
    return ops.cast(sums, "float32") * (highest / 127) * scales
