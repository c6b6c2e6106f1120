"""Outputs of an encoder for texts: the base class for classifiers and masked language models."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.batch_predictor import (
    BatchAttention,
    BatchPredictor,
    by_position,
    pad,
)
from tf_transformer.inference.encoder_graph import EncoderGraph
from tf_transformer.inference.predictor import Progress, no_progress
from tf_transformer.inference.text_graph import Outputs, write_saved_model
from tf_transformer.inference.traced import STRINGS, Traced
from tf_transformer.machine.threads import require_threads
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings


class EncoderPredictor(BatchPredictor):
    """A predictor without a search: one forward pass for each text.

    A subclass defines `outputs`, predictions and scores from these outputs, and `signatures`.

    Args:
        model: the built model; it has an `encoder`.
        codec: the codec of the model.
        config: options for the sizes of batches and the length of texts.

    Attributes:
        inputs: names of the texts of a row in the signature of the SavedModel.
    """

    inputs: tuple[str, ...] = ("text",)

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        super().__init__(model, codec, config)
        self._graph = self.graph()
        self._encode = Traced(self._graph.encode, *[STRINGS] * len(self.inputs))

    def graph(self, jit_compile: bool = False) -> EncoderGraph:
        """The graph that `save` writes.

        Args:
            jit_compile: must be false; this model has no search that XLA could compile.

        Raises:
            InputError: with `jit_compile`.
        """
        if jit_compile:
            raise InputError(
                "jit_compile compiles a search, and this model has none. Export without it."
            )
        return EncoderGraph(
            *(self.model, self.outputs, self.codec, self.config),
            *(self.max_source_length, self.inputs),
        )

    @abstractmethod
    def outputs(self, ids: tf.Tensor) -> Outputs:
        """Computes the outputs of the SavedModel.

        Args:
            ids: int32 tensor (B, S), padded at the end.

        Returns:
            tensors (B, ...) by name.
        """

    def columns(self, texts: list[str]) -> list[list[str]]:
        """The texts of rows as columns, one for each name in `inputs`."""
        return [texts]

    def encode(self, columns: Sequence[Sequence[str]]) -> tuple[list[np.ndarray], list[bool]]:
        """Encodes rows of texts.

        Args:
            columns: a list of texts for each name in `inputs`.

        Returns:
            for each row its ids, int32 (S,), with an end token after each text; and whether the
            row was cut.
        """
        ids, cut = self._encode(*map(as_strings, columns))
        return ids.lists(), cut.numpy().tolist()

    def arrays(
        self, rows: Sequence[np.ndarray], progress: Progress = no_progress
    ) -> dict[str, np.ndarray]:
        """The outputs for rows of ids, by name, in the order of the rows."""
        specs = self._graph.outputs.concrete.structured_outputs
        arrays = {
            name: np.zeros((len(rows), *spec.shape[1:]), spec.dtype.as_numpy_dtype)
            for name, spec in specs.items()
        }
        for indices, of_batch in self._in_parallel(
            lambda indices: self._graph.outputs(pad([rows[i] for i in indices])),
            self._batches([len(row) for row in rows]),
        ):
            for name, values in of_batch.items():
                arrays[name][indices] = values.numpy()
            progress(len(indices), sum(len(rows[i]) for i in indices))
        return arrays

    def attention_batches(
        self, texts: Sequence[str], predictions: Sequence[str]
    ) -> Iterator[tuple[list[int], list[BatchAttention]]]:
        """Batches of texts: the indices of the texts, and the encoder's attention.

        The encoder does not read the predictions.
        """
        rows, _ = self.encode(self.columns(list(texts)))
        encoder = self.model.encoder
        for indices in self._batches(list(map(len, rows))):
            ids = pad([rows[i] for i in indices])
            weights = by_position(encoder.stack, encoder.run(ids).attention)
            yield indices, [BatchAttention("encoder", ids, ids, weights)]

    def save(self, path: str | os.PathLike, jit_compile: bool = False) -> None:
        """Writes a SavedModel that takes strings and contains the tokenizer; see `EncoderGraph`.

        Args:
            path: the folder to make.
            jit_compile: must be false; XLA is for searches.

        Raises:
            InputError: with `jit_compile`.
        """
        require_threads()
        write_saved_model(self.graph(jit_compile=True) if jit_compile else self._graph, path)
