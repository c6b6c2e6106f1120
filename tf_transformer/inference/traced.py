"""Functions of tensors as graphs, traced once each: by a predictor and for a SavedModel."""

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
    """Rows of ids one after another, as a `tf.RaggedTensor` has them."""

    values: tf.Tensor  # int32 (T,)
    splits: tf.Tensor  # int64 (B + 1,): where rows start, and the end of the last one

    def lists(self) -> list[np.ndarray]:
        """The ids of each row."""
        values, splits = self.values.numpy(), self.splits.numpy().tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]


class Traced:
    """A function as a graph, traced when it is first needed.

    Other graphs call this graph instead of tracing the function again. A call takes a fraction of
    the time of a `tf.function` that returns ragged tensors, which counts for a single sentence.
    The graph has no gradients of its own: a SavedModel cannot hold them.

    Args:
        function: from tensors to tensors; ragged ones become `Rows`.
        *inputs: the shapes and types of its arguments.
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
