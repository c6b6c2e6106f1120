"""Products of attention in decoding steps, which differ in shape from step to step."""

import functools

import tensorflow as tf
from keras import ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import attention


def product(a: tf.Tensor, b: tf.Tensor, transposed: bool) -> tf.Tensor:
    """The product a b, or a bᵀ, of the last two axes of (B, H, M, K) and other tensors.

    oneDNN's product of batches divides even the smallest one between threads, which takes longer
    than the product. It also keeps 0.2 MB for each shape in each thread, for up to 1,024 shapes.
    BatchMatMulV3 is Eigen's product, which keeps nothing. It is fast for single rows in float32.
    """
    if a.dtype != tf.float32:
        return ops.matmul(a, ops.swapaxes(b, -1, -2) if transposed else b)
    if a.shape[2] == 1:
        return tf.raw_ops.BatchMatMulV3(x=a, y=b, Tout=a.dtype, adj_y=transposed)
    rows, matrices = tf.expand_dims(a, 3), tf.expand_dims(b, 2)
    products = tf.raw_ops.BatchMatMulV3(x=rows, y=matrices, Tout=a.dtype, adj_y=transposed)
    return tf.squeeze(products, 3)


def for_steps() -> kernels.Kernels:
    """The kernels in use, for the steps of a search: `TUNED` with the products of this module.

    `keras.ops` takes ten to thirty operations for what TensorFlow's gather does in one.
    """
    return _IN_STEPS if kernels.current() is kernels.TUNED else kernels.current()


_IN_STEPS = kernels.TUNED._replace(
    attention=functools.partial(attention, in_steps=product), gather=tf.gather
)
