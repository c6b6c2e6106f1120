"""The model sees text in capitals or in title case as a usual sentence; a short word is copied."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.search_texts import Pairs
from tf_transformer.inference.text_graph import STRINGS, Traced
from tf_transformer.text import capitals
from tf_transformer.text.normalization import class_of

_KINDS = {kind: class_of(categories) for kind, categories in capitals.KINDS.items()}


class CapitalsGraph(SearchGraph):
    """A `SearchGraph` whose model sees text in capitals or in title case as a usual sentence.

    The predictions for such a text are put in its case. Given predictions and prefixes of such a
    text count as sentences, too; see `capitals.sentence`. Few training texts have such capitals,
    and the pieces of these texts are short, so a model predicts better from a sentence. A short
    word such as EU is its own prediction, because it would be another word in a sentence.
    """

    def __init__(self, *arguments: Any):
        self._title, self._sentence = (Traced(f, STRINGS, rare=True) for f in (title, sentence))
        super().__init__(*arguments)

    def is_copied(self, text: tf.Tensor) -> tf.Tensor:
        return tf.logical_or(super().is_copied(text), is_short_word(self.without_spans(text)))

    def encode(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        tag, rest = self.codec["source"].split_tag(text)
        return super().encode(tf.strings.join([tag, self._sentence_like(rest, rest)]))

    def encode_prefix(self, text: tf.Tensor, prefix: tf.Tensor | None) -> tf.RaggedTensor | None:
        _, rest = self.codec["source"].split_tag(text)
        usual = None if prefix is None else self._sentence_like(rest, prefix)
        return super().encode_prefix(text, usual)

    def encode_terms(self, text: tf.Tensor, terms: tf.Tensor | None) -> tf.RaggedTensor | None:
        _, rest = self.codec["source"].split_tag(text)
        return super().encode_terms(self._sentence_like(rest, rest), terms)

    def read_pairs(self, source: tf.Tensor, target: tf.Tensor) -> Pairs:
        return super().read_pairs(source, self._sentence_like(self.clean(source)[1], target))

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        strings = super().decode(hypotheses, text)
        _, rest = self.codec["source"].split_tag(text)
        upper, in_title = (mask[:, None] for mask in cases(self.without_spans(rest)))
        flat = tf.reshape(strings, [-1])
        titles = tf.cond(tf.reduce_any(in_title), lambda: self._title(flat), lambda: flat)
        strings = tf.where(in_title, tf.reshape(titles, tf.shape(strings)), strings)
        return tf.where(upper, tf.strings.upper(strings, "utf-8"), strings)

    def _sentence_like(self, text: tf.Tensor, changed: tf.Tensor) -> tf.Tensor:
        """Puts strings `changed` (B,) in the form of a sentence where `text` (B,) has capitals."""
        has_capitals = tf.logical_or(*cases(self.without_spans(text)))
        sentences = tf.cond(
            tf.reduce_any(has_capitals), lambda: self._sentence(changed), lambda: changed
        )
        return tf.where(has_capitals, sentences, changed)


def cases(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Which strings (B,) are in capitals, and which are in title case: two of bool (B,).

    A text is in title case only if it is not in capitals. A short word is in neither; see
    `capitals.form_of`.
    """
    kinds = _kinds_of(text)
    is_short = tf.strings.regex_full_match(kinds, capitals.SHORT_WORD)
    upper = tf.strings.regex_full_match(kinds, capitals.IN_CAPITALS) & ~is_short
    in_title = tf.strings.regex_full_match(kinds + " ", capitals.IN_TITLE_CASE)
    return upper, in_title & ~upper


def is_short_word(text: tf.Tensor) -> tf.Tensor:
    """Which strings (B,) are a short word: bool (B,); see `capitals.is_short_word`."""
    return tf.strings.regex_full_match(_kinds_of(text), capitals.SHORT_WORD)


def _kinds(text: tf.Tensor) -> tf.Tensor:
    """The kind of each character of strings (B,), as strings (B,)."""
    kinds = tf.strings.regex_replace(text, f"[^{''.join(_KINDS.values())}]", capitals.OTHER_KIND)
    for kind, characters in _KINDS.items():
        kinds = tf.strings.regex_replace(kinds, f"[{characters}]", kind)
    return kinds


_kinds_of = Traced(_kinds, STRINGS)  # a graph has these long patterns once


def title(text: tf.Tensor) -> tf.Tensor:
    """Begins each word of the strings (B,) with a capital: string (B,); see `capitals.title`."""
    return _with_capitals(text, rf"(?:^|[{_KINDS[' ']}])[^{''.join(_KINDS.values())}]*")


def sentence(text: tf.Tensor) -> tf.Tensor:
    """Puts the strings (B,) in the form of a sentence: string (B,); see `capitals.sentence`.

    NUL is removed, as by `clean`.
    """
    lower = tf.strings.lower(tf.strings.regex_replace(text, r"\x00", ""), "utf-8")
    return _with_capitals(lower, f"^[^{_KINDS['A']}{_KINDS['a']}{_KINDS['0']}]*")


def _with_capitals(text: tf.Tensor, before: str) -> tf.Tensor:
    """Makes a letter that follows a match of `before` a capital, in strings (B,)."""
    marked = tf.strings.regex_replace(text, f"({before})([{_KINDS['a']}])", "\\1\0\\2")
    parts = tf.strings.split(marked, "\0")
    rest = parts[:, 1:]  # each starts with such a letter
    starts = tf.strings.upper(tf.strings.substr(rest, 0, 1, unit="UTF8_CHAR"), "utf-8")
    ends = tf.strings.substr(rest, 1, tf.int32.max, unit="UTF8_CHAR")
    words = tf.strings.reduce_join(tf.strings.join([starts, ends]), axis=1)
    return tf.strings.join([tf.strings.reduce_join(parts[:, :1], axis=1), words])
