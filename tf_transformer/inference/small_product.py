"""The product of small matrices in decoding steps, without oneDNN."""

import functools

import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.kernels import Kernels


def small_product(x: tf.Tensor, y: tf.Tensor, transpose_y: bool) -> tf.Tensor:
    """The product of matrices (..., M, K) and (..., K, N), or (..., N, K) with `transpose_y`.

    TensorFlow gives the operations of `tf.matmul` to oneDNN, but not this one.
    """
    return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=x.dtype, adj_y=transpose_y)


def for_steps(chosen: Kernels) -> Kernels:
    """The set for the steps of a search whose shapes change, in place of the tuned set."""
    if chosen is not kernels.TUNED:
        return chosen
    attention = functools.partial(chosen.attention, small_product=small_product)
    return chosen._replace(attention=attention)
