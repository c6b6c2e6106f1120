"""Products of attention in decoding steps, which differ in shape from step to step."""

import functools

import tensorflow as tf
from keras import ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import Products, attention


def for_steps() -> kernels.Kernels:
    """The kernels in use, for the steps of a search: `TUNED` with the products of this module."""
    return _IN_STEPS if kernels.current() is kernels.TUNED else kernels.current()


def _product(a: tf.Tensor, b: tf.Tensor, transposed: bool = False) -> tf.Tensor:
    """The product a b, or a bᵀ, of the last two axes.

    oneDNN's product of batches keeps 0.2 MB for each shape in each thread, for up to 1,024 shapes,
    and needs 0.3 ms to prepare a shape. Eigen's product keeps nothing; the op BatchMatMulV3 is
    always Eigen's on CPUs. Eigen is slow in bfloat16.
    """
    if a.dtype != tf.float32:
        return ops.matmul(a, ops.swapaxes(b, -1, -2) if transposed else b)
    return tf.raw_ops.BatchMatMulV3(x=a, y=b, Tout=a.dtype, adj_y=transposed)


_PRODUCTS = Products(functools.partial(_product, transposed=True), _product)
_IN_STEPS = kernels.TUNED._replace(attention=functools.partial(attention, in_steps=_PRODUCTS))
