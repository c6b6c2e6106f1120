"""Text in capitals is searched for in lower case."""

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.text.graph_tokenizer import clean, in_capitals


class CapitalsGraph(SearchGraph):
    """A `SearchGraph` whose model sees text in capitals in lower case.

    The predictions for such a text are put in capitals. Given predictions and prefixes of such a
    text count in lower case, too. Few training texts are in capitals, and their pieces are short,
    so a model predicts better from lower case.
    """

    def encode(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        return super().encode(_lower_like(text, text))

    def encode_prefix(self, text: tf.Tensor, prefix: tf.Tensor | None) -> tf.RaggedTensor | None:
        lowered = None if prefix is None else _lower_like(text, prefix)
        return super().encode_prefix(text, lowered)

    def read_pairs(
        self, source: tf.Tensor, target: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        return super().read_pairs(source, _lower_like(clean(source), target))

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        strings = super().decode(hypotheses, text)
        return tf.where(in_capitals(text)[:, None], tf.strings.upper(strings, "utf-8"), strings)


def _lower_like(text: tf.Tensor, changed: tf.Tensor) -> tf.Tensor:
    """Puts the strings `changed` (B,) in lower case where `text` (B,) is in capitals."""
    return tf.where(in_capitals(text), tf.strings.lower(changed, "utf-8"), changed)
