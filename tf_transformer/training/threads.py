"""CPU threads of a training."""

import tensorflow as tf

from tf_transformer.threads import available_cores, set_threads
from tf_transformer.thresholds import MAX_MICRO_BATCHES


def use_threads(count: int = 0, jit_compile: bool = False) -> int:
    """Sets the number of CPU threads; must come before TensorFlow computes anything.

    Changes nothing later, or where there is a GPU.

    Args:
        count: threads of a training; 0: one for each core that this process may use.
        jit_compile: whether XLA compiles the training, which is faster with whole batches.

    Returns:
        the best number of micro-batches per batch.

    Example:
        >>> use_threads(2)
        2
    """
    if tf.config.list_physical_devices("GPU"):
        return 1
    count = count or available_cores()
    micro_batches = 1 if jit_compile else min(count, MAX_MICRO_BATCHES)
    set_threads(count, count // micro_batches)
    return micro_batches
