"""Text in capitals or in title case is searched for in lower case."""

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.text import capitals
from tf_transformer.text.graph_tokenizer import clean
from tf_transformer.text.normalization import class_of


class CapitalsGraph(SearchGraph):
    """A `SearchGraph` whose model sees text in capitals or in title case in lower case.

    The predictions for such a text are put in its case. Given predictions and prefixes of such a
    text count in lower case, too. Few training texts have such capitals, and the pieces of these
    texts are short, so a model predicts better from lower case.
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
        upper, in_title = (mask[:, None] for mask in cases(text))
        titles = tf.reshape(title(tf.reshape(strings, [-1])), tf.shape(strings))
        strings = tf.where(in_title, titles, strings)
        return tf.where(upper, tf.strings.upper(strings, "utf-8"), strings)


def cases(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Which strings (B,) are in capitals, and which are in title case: two of bool (B,).

    A text is in title case only if it is not in capitals; see `capitals.form_of`.
    """
    known = "".join(map(class_of, capitals.KINDS.values()))
    kinds = tf.strings.regex_replace(text, f"[^{known}]", capitals.OTHER_KIND)
    for kind, categories in capitals.KINDS.items():
        kinds = tf.strings.regex_replace(kinds, f"[{class_of(categories)}]", kind)
    upper = tf.strings.regex_full_match(kinds, capitals.IN_CAPITALS)
    in_title = tf.strings.regex_full_match(kinds + " ", capitals.IN_TITLE_CASE)
    return upper, tf.logical_and(in_title, tf.logical_not(upper))


def title(text: tf.Tensor) -> tf.Tensor:
    """Begins each word of the strings (B,) with a capital: string (B,); see `capitals.title`."""
    kinds = {kind: class_of(categories) for kind, categories in capitals.KINDS.items()}
    before = rf"(^|[{kinds[' ']}])([^{''.join(kinds.values())}]*)"
    marked = tf.strings.regex_replace(text, f"{before}([{kinds['a']}])", "\\1\\2\0\\3")
    parts = tf.strings.split(marked, "\0")
    rest = parts[:, 1:]  # each starts a word
    starts = tf.strings.upper(tf.strings.substr(rest, 0, 1, unit="UTF8_CHAR"), "utf-8")
    ends = tf.strings.substr(rest, 1, tf.int32.max, unit="UTF8_CHAR")
    words = tf.strings.reduce_join(tf.strings.join([starts, ends]), axis=1)
    return tf.strings.join([tf.strings.reduce_join(parts[:, :1], axis=1), words])


def _lower_like(text: tf.Tensor, changed: tf.Tensor) -> tf.Tensor:
    """Puts the strings `changed` (B,) in lower case where `text` (B,) has capitals."""
    return tf.where(tf.logical_or(*cases(text)), tf.strings.lower(changed, "utf-8"), changed)
