"""Strings to ids and back as TensorFlow operations, for Python and for exported graphs."""

import hashlib
import re
from collections.abc import Mapping, Sequence

import tensorflow as tf

from tf_transformer.text.normalization import BLANK, LETTERS, WHITE_SPACE, class_of, well_formed
from tf_transformer.text.sentencepiece_ops import sentencepiece_ops
from tf_transformer.text.special_ids import EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.target_tag import TAG
from tf_transformer.text.terms import ALONE
from tf_transformer.text.tokenizer import Tokenizer

# For each first byte of a character: its size in bytes, and the range of its second byte. NUL is
# none, because no text has it.
_FIRST = [
    *((0, 0, 0), *[(1, 0, 0)] * 0x7F, *[(0, 0, 0)] * 0x42, *[(2, 0x80, 0xBF)] * 0x1E),
    *((3, 0xA0, 0xBF), *[(3, 0x80, 0xBF)] * 12, (3, 0x80, 0x9F), *[(3, 0x80, 0xBF)] * 2),
    *((4, 0x90, 0xBF), *[(4, 0x80, 0xBF)] * 3, (4, 0x80, 0x8F), *[(0, 0, 0)] * 11),
]

# Arguments of SentencePiece's ops: no sampling; no start, no end, in order.
_BEST = {"nbest_size": 0, "alpha": 1.0}
_AS_IT_IS = {"add_bos": False, "add_eos": False, "reverse": False}


def as_strings(texts: Sequence[str]) -> tf.Tensor:
    """Converts texts to a string tensor (B,) in UTF-8. U+FFFD replaces lone surrogates."""
    return tf.constant([well_formed(text).encode() for text in texts], tf.string)


def clean(text: tf.Tensor) -> tf.Tensor:
    """Prepares strings (B,) as `Tokenizer.encode` does: `valid`, and empty if they are blank."""
    text = valid(text)
    return tf.where(tf.strings.regex_full_match(text, f"[{class_of(BLANK)}]*"), "", text)


def valid(text: tf.Tensor) -> tf.Tensor:
    """Removes NUL from strings (B,). U+FFFD replaces broken UTF-8, as errors="replace" does."""
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    return tf.strings.regex_replace(text, r"\x00", "")


def without_letters(text: tf.Tensor) -> tf.Tensor:
    """Which strings (B,) have characters but no letter: bool (B,)."""
    no_letter = tf.strings.regex_full_match(text, f"[^{class_of(LETTERS)}]*")
    return tf.logical_and(no_letter, tf.not_equal(text, ""))


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """A SentencePiece model in memory, shared by all tokenizers of a process with this model.

    The model has a name. A model without a name belongs to the operation that reads it, and is lost
    when TensorFlow clears its caches, for example in `tf.random.set_seed`.
    """

    def __init__(self, model: bytes):
        super().__init__()
        self._model = model
        _ = self.resource_handle  # reads the model

    def _create_resource(self) -> tf.Tensor:
        name = hashlib.sha256(self._model).hexdigest()
        return sentencepiece_ops().sentencepiece_op(model=self._model, shared_name=name)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The pieces of strings (B,) as ids, int32 (B, None)."""
        ids, splits = sentencepiece_ops().sentencepiece_tokenize_op(
            self.resource_handle, text, **_BEST, **_AS_IT_IS
        )
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """The strings (B,) of ids, int32 (B, None)."""
        return sentencepiece_ops().sentencepiece_detokenize_op(
            self.resource_handle, ids.flat_values, ids.row_splits, **_AS_IT_IS
        )


class GraphTokenizer(tf.Module):
    """A `Tokenizer` for string tensors: tensorflow-text's SentencePiece op with the same model.

    Attributes:
        line_starts: whether the tokenizer adds a space at the start of each line.
        tags: the ids of target tags by tag.

    Example:
        >>> tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
        >>> in_graph = GraphTokenizer(tokenizer)
        >>> start, rest = in_graph.encode(["a ho"]), in_graph.encode_continuation(["use"])
        >>> in_graph.decode(tf.concat([start, rest], axis=1)).numpy()
        array([b'a house'], dtype=object)
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__()
        self._model = _SharedModel(tokenizer.model)
        self._byte_of = [tokenizer.byte_of.get(i, -1) for i in range(tokenizer.vocabulary_size)]
        is_larger = tokenizer.num_pieces > tokenizer.vocabulary_size
        self._beyond = tokenizer.vocabulary_size if is_larger else None
        self.tags = dict(tokenizer.tags)
        self._before_spaces = tokenizer.before_spaces
        unknown = {*tokenizer.looked_up, UNK_ID}
        pieces = range(tokenizer.num_pieces if tokenizer.looked_up else 0)
        self._looked_up = [i in unknown for i in pieces]
        self._folds_spaces = tokenizer.folds_spaces
        id_of = tokenizer.piece_to_id_or_unknown
        self._space_id = id_of("▁")
        # A private-use character without a piece is encoded as bytes. No piece reaches across it.
        self._boundary = next(c for c in map(chr, range(0xE000, 0xF900)) if id_of(c) == UNK_ID)
        self._size = len(self._boundary.encode("utf-8")) if tokenizer.byte_of else 1
        self._boundary_ids = len(tokenizer.encode(self._boundary)) - 1
        self.line_starts = self._boundary_ids > self._size

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encodes strings (B,), prepared by `clean`, as ragged ids (B, None) without the end id."""
        if not self.tags:
            return self._known(text)
        tag, rest = self.split_tag(text)
        ids = tf.fill(tf.shape(text), -1)
        for piece, token in self.tags.items():
            ids = tf.where(tf.equal(tag, piece), token, ids)
        has_tag = ids >= 0
        tags = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(ids, has_tag), tf.cast(has_tag, tf.int64), validate=False
        )
        return tf.concat([tags, self._known(rest)], axis=1)

    def split_tag(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Divides strings (B,) into tags and the rest: two of string (B,); see `split_tag`."""
        none = tf.fill(tf.shape(text), "")
        if not self.tags:
            return none, text
        blank = f"[{class_of(BLANK)}]*"
        tagged = f"(?s)^{blank}({TAG.pattern})(?:{blank}|{WHITE_SPACE}*(.*))$"
        found, rest = (tf.strings.regex_replace(text, tagged, part) for part in (r"\1", r"\2"))
        is_known = tf.reduce_any(tf.equal(found[:, None], list(self.tags)), axis=1)
        return tf.where(is_known, found, none), tf.where(is_known, rest, text)

    def _known(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids of strings (B,), with the unknown id for pieces outside of the vocabulary."""
        ids = self._model.tokenize(text)
        if self._looked_up:
            ids = self._joined(ids)
        if self._beyond is None:
            return ids
        known = tf.where(ids.flat_values < self._beyond, ids.flat_values, UNK_ID)
        return ids.with_flat_values(known)

    def _joined(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Joins several unknown characters in a row; see `Tokenizer.looked_up`."""
        padded = ids.to_tensor(PAD_ID)  # (B, T)
        unknown = tf.gather(self._looked_up, padded)
        before, after = (_shifted(tf.cast(unknown, tf.int32), count) > 0 for count in (1, -1))
        joined = tf.where(unknown & (before | after), UNK_ID, padded)
        kept = tf.sequence_mask(ids.row_lengths()) & ~(unknown & before)
        return tf.ragged.boolean_mask(joined, kept)

    def encode_continuation(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encodes strings (B,) that continue a line, as ragged ids (B, None) without the end id.

        SentencePiece adds a space at the start of a line. This method does not.
        """
        ids = self._known(tf.strings.join([self._boundary, valid(text)]))
        return ids[:, self._boundary_ids :]

    def encode_inside(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encodes strings (B,) as they stand in a line after other words: ragged ids (B, None).

        A character of a script without spaces has no space before it.
        """
        alone = tf.strings.regex_full_match(text, f"(?s)[{ALONE}].*")
        return self.encode_continuation(tf.where(alone, text, tf.strings.join([" ", text])))

    def ends_in_space(self, text: tf.Tensor) -> tf.Tensor:
        """Which strings (B,) end in a space, so that a new word follows; `encode` drops it."""
        if not self._folds_spaces:
            return tf.zeros(tf.shape(text), tf.bool)
        text = clean(text)
        ids = self._model.tokenize(tf.strings.join([text, self._boundary]))
        before = ids[:, -1 - self._size : -self._size].to_tensor(PAD_ID, shape=(None, 1))[:, 0]
        return tf.logical_and(tf.equal(before, self._space_id), tf.not_equal(text, ""))

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Decodes the ids of texts to strings (B,)."""
        if self._before_spaces is None:
            return self._model.detokenize(ids)
        token, text = self._before_spaces
        start = tf.fill([ids.nrows(), 1], tf.cast(token, ids.dtype))
        strings = self._model.detokenize(tf.concat([start, ids], axis=1))
        return tf.strings.regex_replace(strings, f"^{re.escape(text)} ?", "", replace_global=False)

    def text_ids(self, ids: tf.Tensor, lengths: tf.Tensor) -> tf.RaggedTensor:
        """Selects the ids before the first end id, as ragged int32 (R, None).

        The first `lengths` (R,) of each row of `ids` (R, L) count. A search may predict bytes of
        half a character, or NUL. They are dropped, as by `Tokenizer.decode`.
        """
        inside = tf.sequence_mask(lengths, tf.shape(ids)[1])
        inside &= tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1) == 0
        values = tf.where(inside, tf.gather(self._byte_of, ids), -1)
        has_bytes = tf.reduce_any(values >= 0)  # most texts have none
        whole = tf.cond(has_bytes, lambda: inside & _is_whole(values), lambda: inside)
        counts = tf.math.count_nonzero(whole, axis=1)
        return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(ids, whole), counts, validate=False)


def _is_whole(values: tf.Tensor) -> tf.Tensor:
    """Which bytes (R, L) belong to complete characters. -1 is not a byte, and always counts."""
    is_byte = values >= 0
    size, low, high = tf.unstack(tf.gather(_FIRST, tf.maximum(values, 0)), axis=-1)
    second, third, fourth = (_shifted(values, -count) for count in (1, 2, 3))
    starts = is_byte & (size > 0)
    starts &= (size < 2) | ((second >= low) & (second <= high))
    for count, value in ((3, third), (4, fourth)):
        starts &= (size < count) | ((value >= 0x80) & (value <= 0xBF))
    size = tf.where(starts, size, 0)
    kept = size > 0
    for count in (1, 2, 3):
        kept |= _shifted(size, count) > count
    return kept | ~is_byte


def _shifted(values: tf.Tensor, count: int) -> tf.Tensor:
    """Moves columns of `values` (R, L) right, or left if count < 0; -1 fills empty columns."""
    padding = [[0, 0], [count, 0]] if count > 0 else [[0, 0], [0, -count]]
    padded = tf.pad(values, padding, constant_values=-1)
    return padded[:, :-count] if count > 0 else padded[:, -count:]


class GraphCodec(tf.Module):
    """A `Codec` for string tensors: `Codec.in_graph` makes it, and exports contain it."""

    def __init__(self, tokenizers: Mapping[str, Tokenizer]):
        super().__init__()
        self._fields = tuple(tokenizers)
        self._tokenizers = list(map(GraphTokenizer, tokenizers.values()))

    def __getitem__(self, field: str) -> GraphTokenizer:
        """Returns the tokenizer of a field."""
        return self._tokenizers[0 if "" in self._fields else self._fields.index(field)]
