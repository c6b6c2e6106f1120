"""A second search, under constraints, for translations with a fault."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.notices_graph import OF_PAIRS
from tf_transformer.inference.text_graph import IDS, Traced
from tf_transformer.text.special_ids import PAD_ID

FAULTS = (Notice.EMPTY, Notice.NUMBERS, Notice.LOOP, Notice.LENGTH_RATIO)
_NUMBER = "1[3-9]|[2-9][0-9]|[1-9][0-9]{2,}"  # a word whose digits other languages write alike


class SecondSearch:
    """Searches again for texts whose best translation has one of `FAULTS`.

    The search has three constraints: no three tokens occur twice, the translation has at least half
    as many tokens as the text, and if numbers differ, it has those of the text (`Problem.terms`).
    Its hypotheses replace the first ones if the best one has fewer faults. A text with a prefix or
    terms is not searched again.

    Args:
        graph: the `SearchGraph` whose searches come first.
    """

    def __init__(self, graph: Any):
        self._graph = graph
        config = graph.whole_search.config
        shortest = min(max(0.5, config.min_length_ratio), config.max_length_ratio)
        size = min(config.no_repeat_ngram_size or 3, 3)
        config = replace(config, no_repeat_ngram_size=size, min_length_ratio=shortest)
        search = replace(graph.whole_search, config=config, static_shapes=False)
        self._search = Traced(lambda ids, terms: search(ids, {"terms": terms}), IDS, IDS, rare=True)

    def __call__(
        self,
        first: Hypotheses,
        drawn: tf.Tensor,
        text: tf.Tensor,
        ids: tf.Tensor,
        fields: Sequence[tf.Tensor] = (),
    ) -> tuple[Hypotheses, tf.Tensor]:
        """The hypotheses and their texts (B, N) for clean strings (B,) with ids (B, S).

        `fields`, int32 (B, P), are those of the `Problem` of the first search.
        """
        graph = self._graph
        batch, count = tf.unstack(tf.shape(drawn))
        rest = graph.untagged(text)
        faults = self._faults(rest, drawn[:, 0])
        is_faulty = tf.reduce_any(faults, axis=1)
        for field in fields:
            is_faulty &= tf.reduce_all(tf.equal(field, PAD_ID), axis=1)

        def search() -> tuple[Hypotheses, tf.Tensor]:
            rows = tf.boolean_mask(tf.range(batch), is_faulty)
            texts, before = tf.gather(rest, rows), tf.gather(faults, rows)
            terms = self._numbers(texts, before[:, FAULTS.index(Notice.NUMBERS)])
            second = self._search(tf.boolean_mask(ids, is_faulty), terms)
            again = graph.decode(second, tf.gather(text, rows))
            after = self._faults(texts, again[:, 0])
            fewer = tf.math.count_nonzero(after, 1) < tf.math.count_nonzero(before, 1)
            fewer &= second.scores[:, 0] > NEG_INF
            longest = tf.maximum(tf.shape(first.ids)[2], tf.shape(second.ids)[2])
            places = tf.boolean_mask(rows, fewer)[:, None]

            def mended(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
                if old.shape.rank == 3:  # ids
                    old, new = (
                        tf.pad(x, [[0, 0], [0, 0], [0, longest - tf.shape(x)[2]]])
                        for x in (old, new)
                    )
                new = tf.boolean_mask(new[:, :count], fewer)
                return tf.tensor_scatter_nd_update(old, places, new)

            return Hypotheses(*map(mended, first, second)), mended(drawn, again)

        return tf.cond(tf.reduce_any(is_faulty), search, lambda: (first, drawn))

    def _faults(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """The `FAULTS` of the translations of strings (B,) without tags: bool (B, K)."""
        shown = self._graph.pair_notices(self._graph.hidden(text), translation)
        return tf.gather(shown, [OF_PAIRS.index(x) for x in FAULTS], axis=1)

    def _numbers(self, text: tf.Tensor, is_wanted: tf.Tensor) -> tf.Tensor:
        """The numbers of strings (B,) as terms, int32 (B, C), C > 0; none if not wanted."""
        words = tf.strings.split(tf.where(is_wanted, text, ""))
        words = tf.strings.regex_replace(words, r"^[^\pL\pN]+|[^\pL\pN]+$", "")
        is_number = tf.strings.regex_full_match(words.flat_values, _NUMBER)
        terms = tf.strings.regex_replace(words, "(.*)", "\\1\t\\1\n")
        terms = words.with_flat_values(tf.where(is_number, terms.flat_values, ""))
        terms = tf.strings.reduce_join(terms, axis=1)
        ids = self._graph.encode_terms(text, terms).to_tensor(PAD_ID)
        return tf.pad(ids, [[0, 0], [0, 1]], constant_values=PAD_ID)
