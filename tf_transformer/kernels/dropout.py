"""Dropout (paper section 5.4; Srivastava et al. 2014)."""

import keras
import numpy as np
from keras import KerasTensor, ops

BYTE_VALUES = 256


def plain_dropout(x: KerasTensor, rate: float, seed: keras.random.SeedGenerator) -> KerasTensor:
    """X · kept / (1 - rate), where `kept` is 0 with probability `rate` in [0, 1), else 1."""
    kept = keras.random.uniform(ops.shape(x), seed=seed) >= rate
    return x * ops.cast(kept, x.dtype) / (1.0 - rate)


def dropout(x: KerasTensor, rate: float, seed: keras.random.SeedGenerator) -> KerasTensor:
    """`plain_dropout` that takes four elements from each random number, one byte for each.

    Drawing random numbers takes most of the time. An element is dropped if its byte is below a
    threshold, so one call can only have a multiple of 1/256 as its rate. For a rate in between,
    each call draws the next lower or the next higher multiple, such that their mean is the rate.
    It scales the kept elements by the multiple that it drew. Rates above 255/256 become 255/256.
    """
    size = ops.size(x)
    # The axis of size 1 gives `view` a known last axis. The last number chooses the threshold.
    numbers = keras.random.randint(((size + 3) // 4 + 1, 1), -(2**31), 2**31 - 1, seed=seed)
    noise = ops.reshape(ops.view(numbers, "uint8"), (-1,))[:size]
    lower = min(int(rate * BYTE_VALUES), BYTE_VALUES - 2)
    share = min(rate * BYTE_VALUES - lower, 1.0)
    higher = numbers[-1, 0] < int(share * (2**32 - 1)) - 2**31  # True with probability `share`
    threshold = ops.where(higher, np.uint8(lower + 1), np.uint8(lower))
    scale = ops.where(
        higher, BYTE_VALUES / (BYTE_VALUES - 1 - lower), BYTE_VALUES / (BYTE_VALUES - lower)
    )
    kept = ops.reshape(noise >= threshold, ops.shape(x))
    return x * (ops.cast(kept, x.dtype) * ops.cast(scale, x.dtype))
