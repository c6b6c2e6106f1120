"""Functions of tensors as graphs, traced once for a predictor and its SavedModel."""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.kernels.gradient import without_own_gradients

IDS = tf.TensorSpec((None, None), tf.int32)
STRINGS = tf.TensorSpec((None,), tf.string)


class Rows(NamedTuple):
    """Rows of ids in one tensor, one after another, like a `tf.RaggedTensor`."""

    values: tf.Tensor  # int32 (T,)
    splits: tf.Tensor  # int64 (B + 1,): the starts of the rows, and the end of the last row

    def lists(self) -> list[np.ndarray]:
        """The ids of each row."""
        values, splits = self.values.numpy(), self.splits.numpy().tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]


class Traced:
    """A function as a graph, traced at its first use.

    Other graphs call this graph and do not trace the function again. A `tf.function` that returns
    ragged tensors takes several times as long per call, which matters for a single sentence. The
    graph has no custom gradients, because a SavedModel cannot hold them.

    Args:
        function: function from tensors to tensors. Ragged tensors in its result become `Rows`.
        *inputs: shapes and dtypes of the arguments.
    """

    def __init__(self, function: Callable[..., Any], *inputs: tf.TensorSpec):
        self._function = tf.function(
            lambda *tensors: tf.nest.map_structure(_as_rows, function(*tensors)),
            input_signature=inputs,
            autograph=False,
        )

    @functools.cached_property
    def concrete(self) -> Any:
        """The traced function."""
        with without_own_gradients():
            return self._function.get_concrete_function()

    def __call__(self, *inputs: Any) -> Any:
        return self.concrete(*inputs)


def _as_rows(output: Any) -> Any:
    is_ragged = isinstance(output, tf.RaggedTensor)
    return Rows(output.flat_values, output.row_splits) if is_ragged else output
