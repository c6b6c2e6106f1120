"""Elements of XML and HTML: which tags of a text open and close them, on tensors."""

import tensorflow as tf

from tf_transformer.text.kept_spans import ALONE, CLOSING, TAG, TAG_NAME


def is_well_formed(spans: tf.Tensor) -> tf.Tensor:
    """Whether the tags among spans (K,) open and close as in XML: bool scalar."""
    tags = tf.boolean_mask(spans, is_paired(spans))
    return tf.cond(tf.size(tags) > 0, lambda: _nest(tags), lambda: tf.constant(True))


def _nest(tags: tf.Tensor) -> tf.Tensor:
    """Whether tags (P,) open and close as in XML: bool scalar."""
    names, closes, level = _levels(tags)
    # On each level, tags open and close in turn.
    pairs = tf.reshape(tf.argsort(level, stable=True)[: tf.size(tags) // 2 * 2], [-1, 2])
    first, second = tf.unstack(pairs, axis=1)
    is_element = ~tf.gather(closes, first) & tf.gather(closes, second)
    for values in (names, level):
        is_element &= tf.equal(tf.gather(values, first), tf.gather(values, second))
    return tf.reduce_all(is_element) & (tf.size(tags) % 2 == 0)


def _levels(tags: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Names, whether tags close, and levels of tags (P,); the two tags of an element share one."""
    names = tf.strings.regex_replace(tags, TAG_NAME, r"\1")
    closes = tf.strings.regex_full_match(tags, CLOSING)
    return names, closes, tf.cumsum(tf.where(closes, -1, 1)) + tf.cast(closes, tf.int32)


def openings(spans: tf.Tensor) -> tf.Tensor:
    """For each span that closes an element, the index of the tag that opens it: int32 (K,).

    Other spans, and tags that close nothing, have -1.
    """
    chosen = tf.cast(tf.where(is_paired(spans)), tf.int32)  # (P, 1)
    names, closes, level = _levels(tf.gather_nd(spans, chosen))
    place = tf.range(tf.size(names))
    earlier = (level[:, None] == level) & (place < place[:, None])
    before = tf.reduce_max(tf.where(earlier, place, -1), axis=1)  # the previous tag of the level
    opened = tf.maximum(before, 0)
    is_pair = closes & (before >= 0) & ~tf.gather(closes, opened)
    is_pair &= tf.equal(names, tf.gather(names, opened))
    opening = tf.where(is_pair, tf.gather(chosen[:, 0], opened), -1)
    return tf.tensor_scatter_nd_update(tf.fill(tf.shape(spans), -1), chosen, opening)


def is_paired(spans: tf.Tensor) -> tf.Tensor:
    """Which spans (K,) are tags that open or close an element with content: bool (K,)."""
    is_tag = tf.strings.regex_full_match(spans, TAG)
    return is_tag & ~tf.strings.regex_full_match(spans, ALONE)
