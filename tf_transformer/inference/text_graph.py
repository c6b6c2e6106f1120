"""Texts on tensors: the base class of the graphs that predictors use and SavedModels contain."""

import functools
import itertools
import os
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.inference import saved_graph
from tf_transformer.inference.micro_batches import Results, run_in_micro_batches
from tf_transformer.kernels.gradient import without_own_gradients
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.rare_functions import RARE_FUNCTION
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

IDS = tf.TensorSpec((None, None), tf.int32)
STRINGS = tf.TensorSpec((None,), tf.string)
NUMBERS = tf.TensorSpec((None,), tf.int32)
Outputs = dict[str, tf.Tensor]
"""The outputs of a signature, tensors (B, ...) by name."""
Endpoints = dict[str, tuple[Callable[..., Outputs], list[str]]]
"""Signatures of a SavedModel: by name, the function and the names of its inputs."""
_FIRST_CALL = threading.Lock()


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
    graph has no custom gradients, because a SavedModel cannot hold them. Ragged tensors in the
    result become `Rows`. All inputs have an axis of rows.

    Args:
        function: the function.
        *inputs: shapes and dtypes of its arguments.
        rare: whether other graphs call this one for few batches; see `RARE_FUNCTION`.
    """

    _is_optimized = False

    def __init__(self, function: Callable[..., Any], *inputs: tf.TensorSpec, rare: bool = False):
        self._function = tf.function(
            lambda *tensors: tf.nest.map_structure(_as_rows, function(*tensors)),
            input_signature=inputs,
            autograph=False,
            experimental_attributes=RARE_FUNCTION if rare else None,
        )

    @functools.cached_property
    def concrete(self) -> Any:
        """The traced function."""
        with without_own_gradients():
            return self._function.get_concrete_function()

    def __call__(self, *inputs: Any) -> Any:
        if not self._is_optimized and tf.executing_eagerly():
            # TensorFlow optimizes the graph in the first call; in each thread, if several call it.
            with _FIRST_CALL:
                if not self._is_optimized:
                    self.concrete(*(rows[:1] for rows in inputs))
                    self._is_optimized = True
        return self.concrete(*inputs)


def _as_rows(output: Any) -> Any:
    is_ragged = isinstance(output, tf.RaggedTensor)
    return Rows(output.flat_values, output.row_splits) if is_ragged else output


class TextGraph(tf.Module):
    """A codec and a model on string tensors.

    A predictor in Python and the signatures of a SavedModel call the same methods. The predictor
    divides lists into batches in Python. A signature takes a batch of any size, and divides it in
    the graph. The outputs for a row are independent of all other rows. A SavedModel contains only
    core TensorFlow ops and tensorflow-text's SentencePiece ops. `batch_size` and `batch_tokens` of
    the configuration limit the micro-batches. Texts are cut to `max_source_length` tokens, with the
    end token.
    """

    def __init__(
        self, model: keras.Model, codec: Codec, config: DecodeConfig, max_source_length: int
    ):
        super().__init__()
        self.model = model
        self.config = config
        self.codec = codec.in_graph()
        self.max_source_length = max_source_length

    @abstractmethod
    def endpoints(self) -> Endpoints:
        """The signatures of the SavedModel."""

    def cut(self, ids: tf.RaggedTensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Adds the end token to each row of ids, int32 (B, None), and says which rows were cut.

        A result has at most `max_source_length` ids.
        """
        room = self.max_source_length - 1
        return with_end(ids, ids.row_starts(), room), ids.row_lengths() > room

    def in_micro_batches(
        self, run: Callable[[tf.Tensor], Results], lengths: tf.Tensor, nothing: Results
    ) -> Results:
        """`run_in_micro_batches` with the limits of the configuration."""
        return run_in_micro_batches(run, lengths, self.max_rows, nothing)

    def max_rows(self, length: tf.Tensor) -> tf.Tensor:
        """The largest number of rows in a micro-batch whose longest row has `length` tokens."""
        return tf.clip_by_value(self.config.batch_tokens // length, 1, self.config.batch_size)


@own_settings()
def write_saved_model(graph: TextGraph, path: str | os.PathLike) -> None:
    """Writes the graph with its signatures as a SavedModel; variables are stored once."""
    archive = keras.export.ExportArchive()
    archive.track(graph)  # else a session finds neither variables nor tokenizer
    traced: dict[Any, Traced] = {}  # Keras would trace each signature twice
    for signature, (function, inputs) in graph.endpoints().items():
        specs = [tf.TensorSpec((None,), tf.string, name=name) for name in inputs]
        endpoint = traced.setdefault((function, *inputs), Traced(function, *specs))
        archive.add_endpoint(signature, endpoint.__call__, input_signature=specs)
    archive.write_out(str(path), verbose=False)
    saved_graph.rewrite(path)


def with_end(
    ids: tf.RaggedTensor, starts: tf.Tensor | None = None, longest: int | None = None
) -> tf.RaggedTensor:
    """Adds the end token to each row of ids, int32 (B, None), after `longest` ids of the row.

    Slices and `concat` of ragged tensors would take many more operations. The results start at the
    indices `starts` of `ids.flat_values`, int64 (B,); None: the starts of the rows.
    """
    starts = ids.row_starts() if starts is None else starts
    lengths = ids.row_lengths()
    if longest is not None:
        lengths = tf.minimum(lengths, longest)
    places = tf.ragged.range(starts, starts + lengths + 1)
    values = tf.gather(tf.pad(ids.flat_values, [[0, 1]]), places.flat_values)
    ends = places.row_limits()[:, None] - 1
    values = tf.tensor_scatter_nd_update(values, ends, tf.fill(tf.shape(starts), EOS_ID))
    return places.with_flat_values(values)


def lengths_of(ids: tf.RaggedTensor) -> tf.Tensor:
    """The number of ids of each row, int32 (B,)."""
    return tf.cast(ids.row_lengths(), tf.int32)


def rows_of(ids: tf.RaggedTensor, rows: tf.Tensor) -> tf.Tensor:
    """Some rows of ids, int32 (R, S), padded to the longest of these rows."""
    return tf.gather(ids, rows).to_tensor(PAD_ID)
