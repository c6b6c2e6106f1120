"""Outputs of an encoder for texts: the base class for classifiers and masked language models."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference import predictor, text_graph
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings, clean


class EncoderGraph(text_graph.TextGraph):
    """A codec and a model without a search on string tensors; see `TextGraph` for `options`.

    `outputs` is a function from ids (B, S) to outputs (B, ...) by name. `inputs` names the texts of
    a row, and `truncated` marks rows that were together longer than `max_source_length`.
    """

    def __init__(self, outputs: Callable[[tf.Tensor], Any], inputs: Sequence[str], *options: Any):
        super().__init__(*options)
        # For Python and the signature.
        self.outputs = text_graph.Traced(own_settings()(outputs), text_graph.IDS)
        self._inputs = list(inputs)

    def endpoints(self) -> text_graph.Endpoints:
        return {"serving_default": (self.predict, self._inputs)}

    def encode(self, *texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Encodes rows, a string tensor (B,) for each text of a row.

        The results are ids with an end token after each text, int32 (B, None), and whether each row
        was cut, bool (B,).
        """
        *first, last = (self.codec["text"].encode(clean(text)) for text in texts)
        return self.cut(tf.concat([*map(text_graph.with_end, first), last], axis=1))

    def predict(self, *texts: tf.Tensor) -> text_graph.Outputs:
        """The signature: the outputs of each row of texts, and `truncated`."""
        ids, cut = self.encode(*texts)
        specs = self.outputs.concrete.structured_outputs

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.outputs(text_graph.rows_of(ids, rows))
            return tuple(outputs[name] for name in specs)

        batch = tf.shape(texts[0])
        nothing = tuple(
            tf.zeros(tf.concat([batch, spec.shape[1:]], axis=0), spec.dtype)
            if spec.dtype != tf.string
            else tf.fill(batch, "")
            for spec in specs.values()
        )
        results = self.in_micro_batches(run, text_graph.lengths_of(ids), nothing)
        return dict(zip(specs, results, strict=True)) | {"truncated": cut}


class EncoderPredictor(predictor.Predictor):
    """A predictor without a search: one forward pass for each text.

    A subclass defines `outputs`, predictions and scores from these outputs, and `signatures`. The
    model has an `encoder`.
    """

    inputs: tuple[str, ...] = ("text",)  # names of the texts of a row in the signature
    _graph: EncoderGraph

    def __init__(self, model: keras.Model, codec: Codec, config: DecodeConfig):
        super().__init__(model, codec, config)
        self._encode = text_graph.Traced(
            self._graph.encode, *[text_graph.STRINGS] * len(self.inputs)
        )

    def graph(self, jit_compile: bool = False) -> EncoderGraph:
        if jit_compile:
            raise InputError(
                "jit_compile compiles a search, and this model has none. Export without it."
            )
        options = self.model, self.codec, self.config, self.max_source_length
        return EncoderGraph(self.outputs, self.inputs, *options)

    @abstractmethod
    def outputs(self, ids: tf.Tensor) -> text_graph.Outputs:
        """The outputs of the SavedModel (B, ...) by name, from ids (B, S), padded at the end."""

    def columns(self, texts: list[str]) -> list[list[str]]:
        """The texts of rows as columns, one for each name in `inputs`."""
        return [texts]

    def encode(self, columns: Sequence[Sequence[str]]) -> tuple[list[np.ndarray], list[bool]]:
        """For each row of texts, its ids int32 (S,), and whether they were cut.

        Each text of a row ends with the end token. There is a column for each name in `inputs`.
        """
        ids, cut = self._encode(*map(as_strings, columns))
        return ids.lists(), cut.numpy().tolist()

    def arrays(
        self, rows: Sequence[np.ndarray], progress: predictor.Progress = predictor.no_progress
    ) -> dict[str, np.ndarray]:
        """The outputs for rows of ids, by name, in the order of the rows."""
        specs = self._graph.outputs.concrete.structured_outputs
        arrays = {
            name: np.zeros((len(rows), *spec.shape[1:]), spec.dtype.as_numpy_dtype)
            for name, spec in specs.items()
        }
        for indices, of_batch in self._in_parallel(
            lambda indices: self._graph.outputs(predictor.pad([rows[i] for i in indices])),
            self._batches([len(row) for row in rows]),
        ):
            for name, values in of_batch.items():
                arrays[name][indices] = values.numpy()
            progress(len(indices), sum(len(rows[i]) for i in indices))
        return arrays

    def attention_batches(self, call: predictor.Call) -> predictor.Attentions:
        """The encoder's attention; the encoder does not read the predictions."""
        rows, _ = self.encode(self.columns(call.texts))
        encoder = self.model.encoder
        for indices in self._batches(list(map(len, rows))):
            ids = predictor.pad([rows[i] for i in indices])
            weights = predictor.by_position(encoder.stack, encoder.run(ids).attention)
            yield indices, [predictor.BatchAttention("encoder", ids, ids, weights)]
