"""Copies of a model in another dtype, for inference."""

import keras
import tensorflow as tf
from keras import ops

from tf_transformer.errors import InputError
from tf_transformer.inference.onednn import OneDnnPolicy, require_int8_product
from tf_transformer.kernels.int8_product import LARGEST_WEIGHT, quantize
from tf_transformer.layers.int8 import Int8Policy
from tf_transformer.models.ensemble import members_of
from tf_transformer.models.names import by_name

DTYPES = ("float32", "bfloat16", "int8")


def dtype_of(model: keras.Model) -> str:
    """The dtype of a model: float32, bfloat16 or int8."""
    return "int8" if isinstance(model.dtype_policy, Int8Policy) else model.compute_dtype


def with_dtype(model: keras.Model, dtype: str) -> keras.Model:
    """The model itself if it has this dtype, or a copy with weights of this dtype.

    Args:
        model: a built model.
        dtype: float32, bfloat16 or int8.

    Raises:
        InputError: for another dtype, a model whose weights are int8 already, or int8 where
            TensorFlow has no product of int8 numbers.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype}.")
    if dtype_of(model) == dtype:
        return model
    if dtype_of(model) == "int8":
        raise InputError(f"expected a float32 model to make it {dtype}, got int8. Load it again.")
    if dtype == "int8":
        require_int8_product()
    policy = OneDnnPolicy() if dtype == "int8" else dtype
    copy = type(model).from_config(model.get_config() | {"dtype": policy})
    copy.build()
    for new, old in zip(members_of(copy), members_of(model), strict=True):
        weights = by_name(new)
        for name, value in by_name(old).items():
            parts = {name: value.value} if name in weights else _int8_parts(name, value)
            for part, values in parts.items():
                weights[part].assign(tf.cast(values, weights[part].dtype))
    return copy


def _int8_parts(name: str, matrix: keras.Variable) -> dict[str, tf.Tensor]:
    """The weights by name of an `Int8Matrix` in place of a float matrix."""
    rows = ops.transpose(matrix) if name.endswith("/kernel") else matrix.value
    integers, scales = quantize(ops.cast(rows, "float32"), LARGEST_WEIGHT)
    parts = {"integers": integers, "highest": 127 * scales[:, 0]}
    return {f"{name}/{part}": values for part, values in parts.items()}
