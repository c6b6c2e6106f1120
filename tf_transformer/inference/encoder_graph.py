"""The graph of a model without a search: raw strings in, the outputs of an encoder out."""

from collections.abc import Callable, Mapping

import keras
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.inference.micro_batches import run_in_micro_batches
from tf_transformer.inference.valid_text import clean
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

Outputs = dict[str, tf.Tensor]


class EncoderGraph(tf.Module):
    """A tokenizer and a model as one graph on string tensors.

    Batches of any size are processed in micro-batches, as in `ServingGraph`. `truncated` marks
    rows that were longer than `max_source_length`.

    Args:
        model: the model.
        outputs: from ids (B, S) to outputs (B, ...) by name.
        nothing: the type and shape of an output of one row, by name.
        codec: the model's tokenizer.
        config: its `batch_size` and `batch_tokens` bound the micro-batches.
        max_source_length: longest row in tokens with the end tokens; longer ones are cut.
        inputs: names of the texts that make a row.
    """

    def __init__(
        self,
        model: keras.Model,
        outputs: Callable[[tf.Tensor], Outputs],
        nothing: Mapping[str, tf.TensorSpec],
        codec: Codec,
        config: DecodeConfig,
        max_source_length: int,
        inputs: list[str],
    ):
        super().__init__()
        # Imported here because training and prediction do not need tensorflow-text.
        import tensorflow_text

        self.model = model
        self._outputs = outputs
        self._nothing = nothing
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(codec["text"].model)
        self._config = config
        self._max_source_length = max_source_length
        self._inputs = inputs

    def endpoints(self) -> dict[str, tuple[Callable[..., Outputs], list[str]]]:
        """The signatures of the SavedModel: their functions and the names of their inputs."""
        return {"serving_default": (self.predict, self._inputs)}

    def predict(self, *texts: tf.Tensor) -> Outputs:
        """Strings (B,) to the outputs of each row, and whether it was cut."""
        # Every text but the last ends with the end token; the last one gets it after the cut.
        *first, last = (self._tokenizer.tokenize(clean(text)) for text in texts)
        end = tf.fill(tf.stack([last.nrows(), 1]), EOS_ID)
        ids = tf.concat([part for text in first for part in (text, end)] + [last], axis=1)
        room = self._max_source_length - 1
        cut = ids.row_lengths() > room
        ids = tf.concat([ids[:, :room], end], axis=1)

        def run(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            found = self._outputs(tf.gather(ids, rows).to_tensor(PAD_ID))
            return tuple(found[name] for name in self._nothing)

        batch = tf.shape(texts[0])
        empty = tuple(
            tf.zeros(tf.concat([batch, spec.shape], axis=0), spec.dtype)
            if spec.dtype != tf.string
            else tf.fill(batch, "")
            for spec in self._nothing.values()
        )
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        found = run_in_micro_batches(run, lengths, self._max_rows, empty)
        return dict(zip(self._nothing, found, strict=True)) | {"truncated": cut}

    def _max_rows(self, length: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_value(self._config.batch_tokens // length, 1, self._config.batch_size)
