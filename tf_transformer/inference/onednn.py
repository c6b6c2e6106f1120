"""oneDNN's product of int8 numbers, an operation that TensorFlow makes when it rewrites graphs."""

import functools
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf
from keras import KerasTensor
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tf_transformer.errors import InputError
from tf_transformer.kernels.int8_product import (
    LARGEST_INPUT,
    LARGEST_WEIGHT,
    plain_int8_product,
    quantize,
)
from tf_transformer.layers.int8 import Int8Policy

_NO_PRODUCT = (
    "this TensorFlow has no product of int8 numbers for this processor. Give the dtype float32."
)


def int8_product(rows: KerasTensor, weights: KerasTensor, highest: KerasTensor) -> tf.Tensor:
    """`plain_int8_product` as one operation; outside of graphs, the plain form.

    oneDNN packs the weights when the operation runs for the first time, and keeps them. So the
    weights must not change.
    """
    if tf.executing_eagerly():
        return plain_int8_product(rows, weights, highest)
    numbers, scales = quantize(rows, LARGEST_INPUT)
    matrix = tf.bitcast(tf.convert_to_tensor(weights), tf.qint8)
    inputs = [
        *(tf.bitcast(numbers, tf.qint8), matrix),
        tf.zeros(matrix.shape[0]),  # the operation must have a bias
        *(tf.constant(-127.0), tf.constant(127.0)),  # integers and values of x are equal here
        *[tf.convert_to_tensor(highest)] * 2,  # of a range, the larger magnitude counts
    ]
    dtypes = {"T1": tf.qint8, "T2": tf.qint8} | dict.fromkeys(("Tbias", "U", "Tout"), tf.float32)
    attributes = {
        **{name: AttrValue(type=dtype.as_datatype_enum) for name, dtype in dtypes.items()},
        "Tdevice_inputs": _types(tensor.dtype for tensor in inputs),
        "Tdevice_outputs": _types([tf.float32]),
        "Thost_inputs": _types([]),
        "Thost_outputs": _types([]),
        "fused_ops": AttrValue(list=AttrValue.ListValue(s=[b"BiasAdd", b"Dequantize"])),
        "input_quant_mode": AttrValue(s=b"SCALED"),
        "output_quant_mode": AttrValue(s=b"SCALED"),
        "transpose_b": AttrValue(b=True),
        "is_weight_const": AttrValue(b=True),
        "is_bias_const": AttrValue(b=True),
    }
    graph = tf.compat.v1.get_default_graph()
    product = graph.create_op(
        "_QuantizedMatMul", inputs, [tf.float32], name="Int8Product", attrs=attributes
    )
    return product.outputs[0] * scales


@keras.saving.register_keras_serializable(package="tf_transformer")
class OneDnnPolicy(Int8Policy):
    """An `Int8Policy` with the product of oneDNN."""

    product = staticmethod(int8_product)


@functools.cache
def require_int8_product() -> None:
    """Raises an `InputError` if TensorFlow has no correct product of int8 numbers here."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (3, 512)).astype(np.float32)
    weights = rng.choice(np.array([-LARGEST_WEIGHT, LARGEST_WEIGHT], np.int8), (16, 512))
    highest = np.ones(16, np.float32)
    arguments = (rows, weights, highest)
    try:
        product = tf.function(int8_product, autograph=False)(*map(tf.constant, arguments))
    except tf.errors.OpError as error:
        raise InputError(f"{_NO_PRODUCT} {error.message}") from error
    if not np.allclose(product, plain_int8_product(*arguments), rtol=1e-5):
        raise InputError(f"{_NO_PRODUCT} Its results are wrong.")


def _types(dtypes: Iterable[tf.DType]) -> AttrValue:
    types = [dtype.as_datatype_enum for dtype in dtypes]
    return AttrValue(list=AttrValue.ListValue(type=types))
