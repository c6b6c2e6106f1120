"""From texts to the outputs of an encoder, on tensors."""

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.inference.text_graph import Outputs, TextGraph, lengths_of, rows_of, with_end
from tf_transformer.inference.traced import IDS, Traced
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import clean


class EncoderGraph(TextGraph):
    """A codec and a model without a search on string tensors; see `TextGraph`.

    `truncated` marks rows that were longer than `max_source_length`.

    Args:
        model: the model.
        outputs: function from ids (B, S) to outputs (B, ...) by name.
        codec: the codec of the model.
        config: options; `batch_size` and `batch_tokens` limit the micro-batches.
        max_source_length: longest row in tokens with the end tokens; longer rows are cut.
        inputs: names of the texts in a row.
    """

    def __init__(
        self,
        model: keras.Model,
        outputs: Callable[[tf.Tensor], Outputs],
        codec: Codec,
        config: DecodeConfig,
        max_source_length: int,
        inputs: Sequence[str],
    ):
        super().__init__(model, codec, config, max_source_length)
        self.outputs = Traced(own_settings()(outputs), IDS)  # for Python and the signature
        self._inputs = list(inputs)

    def endpoints(self) -> dict[str, tuple[Callable[..., Outputs], list[str]]]:
        """The signature `serving_default`; see `predict`."""
        return {"serving_default": (self.predict, self._inputs)}

    def encode(self, *texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Encodes rows of texts.

        Args:
            *texts: string tensors (B,), one for each text of a row.

        Returns:
            ids with an end token after each text, int32 (B, None); and whether each row was cut,
            bool (B,).
        """
        *first, last = (self.codec["text"].encode(clean(text)) for text in texts)
        return self.cut(tf.concat([*map(with_end, first), last], axis=1))

    def predict(self, *texts: tf.Tensor) -> Outputs:
        """Computes the outputs of each row, and `truncated`, whether the row was cut.

        Args:
            *texts: string tensors (B,), one for each text of a row.
        """
        ids, cut = self.encode(*texts)
        specs = self.outputs.concrete.structured_outputs

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            outputs = self.outputs(rows_of(ids, rows))
            return tuple(outputs[name] for name in specs)

        batch = tf.shape(texts[0])
        nothing = tuple(
            tf.zeros(tf.concat([batch, spec.shape[1:]], axis=0), spec.dtype)
            if spec.dtype != tf.string
            else tf.fill(batch, "")
            for spec in specs.values()
        )
        results = self.in_micro_batches(run, lengths_of(ids), nothing)
        return dict(zip(specs, results, strict=True)) | {"truncated": cut}
