"""The texts of a search on tensors: their parts, ids and inputs, and the texts of hypotheses."""

import functools
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import keras
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.inference import text_graph
from tf_transformer.inference.encode_terms import encode_terms, with_terms
from tf_transformer.inference.inputs import INPUTS, TERMS, Input, with_tag
from tf_transformer.inference.kept_graph import KeptSpans
from tf_transformer.inference.parts import LongParts, Parts, join_parts, parts_of, whole_texts
from tf_transformer.inference.span_symbols import SpanSymbols
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import clean, valid, without_letters
from tf_transformer.text.inline_terms import MARKED
from tf_transformer.text.punctuation import RULES
from tf_transformer.text.special_ids import BOS_ID

Pairs = tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]
"""Ids of inputs and of predictions, int32 (B, None), and whether a text of each was cut (B,)."""


class Prepared(NamedTuple):
    """Texts and their inputs, prepared for a search."""

    text: tf.Tensor  # string (B,), valid UTF-8; only white space becomes ""
    ids: tf.RaggedTensor  # int32 (B, None), the end token last
    cut: tf.Tensor  # bool (B,): whether the text was longer than `max_source_length`
    lengths: tf.Tensor  # int32 (B,): number of ids; 0 for a text without a search
    copies: tf.Tensor  # string (B,): the prediction for a text without a search
    problem: dict[str, tf.RaggedTensor]  # int32 (B, None), fields of the `Problem` by name
    apart: tf.Tensor  # bool (B,): whether an input applies that has batches of its own


class SearchTexts(text_graph.TextGraph):
    """A codec on string tensors, with the inputs, the parts and the kept spans of texts.

    A subclass for another form of text overrides `is_copied`, `encode`, `encode_target`,
    `encode_prefix` and `decode`.

    Args:
        model, codec, config, max_source_length: as in `TextGraph`, also for given targets.
        copies: whether a text without letters is its own prediction, with score 0.
    """

    shortest_source: ClassVar[int] = 2  # fewest tokens of a text for a search, with the end token
    optional_inputs: ClassVar[tuple[Input, ...]] = INPUTS  # of those that the codec has

    def __init__(
        self,
        model: keras.Model,
        codec: Codec,
        config: DecodeConfig,
        max_source_length: int,
        copies: bool,
    ):
        super().__init__(model, codec, config, max_source_length)
        self._copies = copies
        keep, keep_as = config.keep, config.keep_as
        self.kept_spans = KeptSpans(keep, self) if keep else None
        self.symbols = SpanSymbols(keep) if keep and keep_as == "emoji" else None
        longest = min(max_source_length, config.trained_source_length or max_source_length)
        room = longest - 1 - bool(self.codec["source"].tags)
        self._kept_pattern = self.kept_spans.pattern if self.kept_spans else ""
        self._long_parts = LongParts(self.count_tokens, room, self._kept_pattern)
        self._encode_terms = text_graph.Traced(
            functools.partial(encode_terms, self), *[text_graph.STRINGS] * 2, rare=True
        )
        self._with_terms = text_graph.Traced(
            functools.partial(with_terms, self), *[text_graph.STRINGS] * 2, rare=True
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that may be given beside each text."""
        return tuple(kind for kind in self.optional_inputs if kind.exists(self.codec))

    @property
    def problem_inputs(self) -> tuple[Input, ...]:
        """The inputs that become fields of the `Problem`, those with batches of their own last."""
        return tuple(kind for kind in self.inputs if kind.into == "problem")

    def join(self, text: tf.Tensor, given: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The texts (B,) with the inputs that belong to the source, string (B,) by name."""
        for kind in self.inputs:
            if kind.into == "source" and kind.name in given:
                text = kind.encode(self, text, given[kind.name])
        return text

    def read(self, text: tf.Tensor, *given: tf.Tensor) -> Prepared:
        """Prepares texts (B,) for a search, with strings (B,) for each of `inputs` or for none."""
        named = dict(zip((kind.name for kind in self.inputs), given, strict=False))
        text, rest = self.clean(self.join(text, named))
        plain = text
        if TERMS.name in named:
            text = self.with_terms(text, named[TERMS.name])
        ids, cut = self.encode(self.hidden(text))
        lengths = text_graph.lengths_of(ids)
        searched = lengths >= self.shortest_source
        copied = self.is_copied(rest) & tf.equal(text, plain)
        problem, apart = {}, tf.zeros(tf.shape(text), tf.bool)
        for kind in self.problem_inputs:
            if (encoded := kind.encode(self, plain, named.get(kind.name))) is not None:
                problem[kind.name] = encoded
                applies = text_graph.lengths_of(encoded) > 0
                copied &= ~applies
                apart |= applies & kind.has_own_batches
        lengths = tf.where(searched & ~copied, lengths, 0)
        copies = tf.where(copied, rest, "")
        return Prepared(text, ids, cut & ~copied, lengths, copies, problem, apart)

    def divide(self, text: tf.Tensor, *given: tf.Tensor) -> tuple[Parts, list[tf.Tensor]]:
        """Divides texts (B,) with `inputs` or none into parts.

        The list has the texts of the parts (P,) with the target tags of the whole texts, and then
        the inputs of the parts. A text with a prefix stays whole; see `Input.of_parts`.
        """
        named = dict(zip((kind.name for kind in self.inputs), given, strict=False))
        tag, rest = self.codec["source"].split_tag(valid(self.join(text, named)))
        whole = tf.zeros(tf.shape(text), tf.bool)
        for kind in self.problem_inputs:
            if kind.name in named and not kind.of_parts:
                whole |= tf.not_equal(named[kind.name], "")
        parts = parts_of(rest, whole, self.config.split_language, self._kept_pattern)
        parts = self._long_parts(parts, whole)
        tags = tf.gather(
            tf.where(tf.equal(tag, ""), "", tf.strings.join([tag, " "])), parts.text_of
        )
        of_parts = [tf.strings.join([tags, parts.texts])]
        for kind in self.inputs if named else ():  # those of the source are in the texts
            values = tf.gather(named[kind.name], parts.text_of)
            of_parts.append(tf.zeros_like(values) if kind.into == "source" else values)
        return parts, of_parts

    def rejoin(
        self, parts: Parts, texts: tf.Tensor, scores: tf.Tensor, *words: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """`join_parts`, with the kept spans of the whole texts.

        A text that changes for their sake has none of `words`.
        """
        joined, scores, *numbers = join_parts(parts, texts, scores, *words)
        if not self.kept_spans:
            return joined, scores, *numbers
        is_divided = (parts.counts > 1)[:, None] & (scores > NEG_INF)
        texts = self.kept_spans.in_joined(whole_texts(parts), joined, is_divided)
        return texts, scores, *(tf.where(tf.equal(texts, joined), x, "") for x in numbers)

    def count_tokens(self, text: tf.Tensor) -> tf.Tensor:
        """The numbers of tokens of strings (B,) without the end token, int32 (B,).

        For a text that would be cut, the result is the largest number without a cut, plus one.
        """
        ids, cut = self.encode(self.clean(text)[0])
        return text_graph.lengths_of(ids) - 1 + tf.cast(cut, tf.int32)

    def is_copied(self, text: tf.Tensor) -> tf.Tensor:
        """Which clean strings (B,), without tags, are their own predictions: bool (B,)."""
        if not self.kept_spans:
            return without_letters(text) if self._copies else tf.fill(tf.shape(text), False)
        rest = self.without_spans(text)
        may_be = tf.not_equal(text, "") & (self._copies | tf.not_equal(text, rest))
        return may_be & without_letters(rest + " ")

    def without_spans(self, text: tf.Tensor) -> tf.Tensor:
        """The strings (B,) without the spans of `config.keep`."""
        return self.kept_spans.without_spans(text) if self.kept_spans else text

    def hidden(self, text: tf.Tensor) -> tf.Tensor:
        """The clean strings (B,) as the search reads them: without the tags of elements.

        With `config.keep_as`, emoji stand for other spans.
        """
        text = self.kept_spans.untagged(text) if self.kept_spans else text
        return self.symbols.hide(text) if self.symbols else text

    def shown(self, outputs: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
        """Results (B, N) of `decode` for strings (B,), with the spans that `hidden` hides."""
        if not self.symbols or not self.kept_spans:
            return outputs
        return self.symbols.show(outputs, self.kept_spans.untagged(text))

    def clean(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Prepares strings (B,) for `encode`, and returns them with and without target tags.

        A target tag alone becomes an empty string.
        """
        text = clean(text)
        _, rest = self.codec["source"].split_tag(text)
        return tf.where(tf.equal(rest, ""), rest, text), rest

    def encode(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The ids of clean strings (B,), and whether each was cut; see `cut`."""
        if self.config.punctuation == "opus":
            for pattern, replacement in RULES:
                text = tf.strings.regex_replace(text, pattern, replacement)
        if self.config.default_tag:
            text = with_tag(self, text, self.config.default_tag)
        return self.cut(self.codec["source"].encode(text))

    def encode_target(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Encodes given predictions (B,), with the results of `encode`."""
        return self.cut(self.codec["target"].encode(clean(text)))

    def encode_prefix(self, text: tf.Tensor, prefix: tf.Tensor | None) -> tf.RaggedTensor | None:
        """The ids, int32 (B, None), of the beginnings of predictions for clean inputs (B,).

        After a space, the start id stands for any piece that begins a word. Without prefixes, the
        result is None.
        """
        if prefix is None:
            return None
        target = self.codec["target"]
        return self.open_words(target.encode(clean(prefix)), target.ends_in_space(prefix))

    def encode_terms(self, text: tf.Tensor, terms: tf.Tensor | None) -> tf.RaggedTensor | None:
        """`Problem.terms`, int32 (B, None), for clean inputs (B,); None without terms."""
        if terms is None:
            return None
        _, rest = self.codec["source"].split_tag(text)
        has_terms = tf.reduce_any(tf.not_equal(terms, ""))
        none = text_graph.Rows(tf.zeros(0, tf.int32), tf.zeros(tf.size(text) + 1, tf.int64))
        rows = tf.cond(has_terms, lambda: self._encode_terms(rest, terms), lambda: none)
        return tf.RaggedTensor.from_row_splits(*rows, validate=False)

    def with_terms(self, text: tf.Tensor, terms: tf.Tensor) -> tf.Tensor:
        """Clean strings (B,), with translations of terms (B,) in them if the model reads terms."""
        if self.config.terms_as == "constraint":
            return text
        has_terms = tf.reduce_any(tf.not_equal(terms, ""))
        return tf.cond(has_terms, lambda: self._with_terms(text, terms), lambda: text)

    def untagged(self, text: tf.Tensor) -> tf.Tensor:
        """Clean strings (B,) without target tags, and without the translations of terms."""
        _, rest = self.codec["source"].split_tag(text)
        if self.config.terms_as != "constraint":
            rest = tf.strings.regex_replace(rest, MARKED, r"\1")
        return rest

    def open_words(self, ids: tf.RaggedTensor, opens: tf.Tensor) -> tf.RaggedTensor:
        """Adds the start id to each row of ids after which a new word `opens`, bool (B,)."""
        starts = tf.fill((tf.math.count_nonzero(opens),), BOS_ID)
        counts = tf.cast(opens, ids.row_splits.dtype)
        return tf.concat(
            [ids, tf.RaggedTensor.from_row_lengths(starts, counts, validate=False)], axis=1
        )

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The texts (B, N) of hypotheses for the inputs `text` (B,)."""
        strings = self.codec["target"].decode(self.text_ids(hypotheses))
        return tf.reshape(strings, tf.shape(hypotheses.lengths))

    def text_ids(self, hypotheses: Hypotheses) -> tf.RaggedTensor:
        """The text ids of hypotheses, int32 (B·N, None); see `GraphTokenizer.text_ids`."""
        ids = tf.reshape(hypotheses.ids, (-1, tf.shape(hypotheses.ids)[2]))
        return self.codec["target"].text_ids(ids, tf.reshape(hypotheses.lengths, [-1]))

    def read_pairs(self, source: tf.Tensor, target: tf.Tensor) -> Pairs:
        """The ids of inputs and predictions, string (B,)."""
        sources, cut = self.encode(self.clean(source)[0])
        targets, target_cut = self.encode_target(target)
        return sources, targets, tf.logical_or(cut, target_cut)
