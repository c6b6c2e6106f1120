"""The graph that TF Serving runs: raw strings in, raw strings out."""

import os
from collections.abc import Callable

import keras
import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.layers import PAD_ID
from tf_transformer.search import Search
from tf_transformer.tokenizer import EOS_ID, Tokenizer

# A compiled search is compiled once a shape; rounded up to these, shapes stay few.
LENGTH_BUCKETS = (8, 16, 24, 32, 48, 64, 128, 256, 512)
BATCH_BUCKETS = (1, 4, 16, 32)
MOST_TOKENS = 4096  # of a compiled batch, because a compiled cache has its full size at once


class ServingGraph(tf.Module):
    """A tokenizer and a search as one graph on string tensors.

    It holds core TensorFlow ops and tensorflow-text's SentencePiece ops and no others.

    Args:
        search: the search on ids.
        tokenizer: its tokenizer.
        max_source_length: longest source in tokens with the end token; the rest is cut off.
        jit_compile: whether XLA compiles the search, for a few sizes of batch and length that
            others are padded to.
    """

    def __init__(
        self, search: Search, tokenizer: Tokenizer, max_source_length: int, jit_compile: bool
    ):
        super().__init__()
        # Here and not at the top: training and translation do without tensorflow-text.
        import tensorflow_text

        self.model = search.model
        self._tokenizer = tensorflow_text.SentencepieceTokenizer(tokenizer.model)
        self._max_source_length = max_source_length
        self._search: Callable[[tf.Tensor], Hypotheses] = search
        if jit_compile:
            compiled = tf.function(search.__call__, jit_compile=True, autograph=False)
            self._search = lambda source: _in_buckets(compiled, source, max_source_length)

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Strings (B,) to `translation`, string (B,), and `score`, float32 (B,)."""
        ids = self._tokenizer.tokenize(text)[:, : self._max_source_length - 1]  # ragged
        empty = tf.equal(ids.row_lengths(), 0)  # (B,)
        end = tf.fill(tf.stack([ids.nrows(), 1]), EOS_ID)
        source = tf.concat([ids, end], axis=1).to_tensor(PAD_ID)  # (B, S)
        best = self._search(source)
        translation = self._detokenize(best.ids[:, 0], best.lengths[:, 0])
        return {
            "translation": tf.where(empty, "", translation),
            "score": tf.where(empty, 0.0, best.scores[:, 0]),
        }

    def _detokenize(self, ids: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Ids (B, L), of which `lengths` count, to strings (B,)."""
        inside = tf.sequence_mask(lengths, tf.shape(ids)[1])
        text_ids = tf.logical_and(inside, tf.not_equal(ids, EOS_ID))
        return self._tokenizer.detokenize(tf.ragged.boolean_mask(ids, text_ids))


def write_saved_model(graph: ServingGraph, path: str | os.PathLike) -> None:
    """Writes the graph with its variables, stored once, under the signature `serving_default`."""
    archive = keras.export.ExportArchive()
    archive.track(graph)  # without this a session finds neither variables nor tokenizer
    text = tf.TensorSpec((None,), tf.string, name="text")
    archive.add_endpoint("serving_default", graph.translate, input_signature=[text])
    archive.write_out(str(path), verbose=False)


def compiled_shapes(longest: int) -> list[tuple[int, int]]:
    """All shapes (B, S) that a compiled search pads batches to.

    Args:
        longest: longest source in tokens with the end token.
    """
    return [
        (rows, length)
        for length in _length_buckets(longest)
        for rows in BATCH_BUCKETS
        if rows <= _most_rows(length)
    ]


def _length_buckets(longest: int) -> list[int]:
    return [*(length for length in LENGTH_BUCKETS if length < longest), longest]


def _most_rows(length: int) -> int:
    return max(rows for rows in BATCH_BUCKETS if rows * length <= MOST_TOKENS or rows == 1)


def _in_buckets(
    search: Callable[[tf.Tensor], Hypotheses], source: tf.Tensor, longest: int
) -> Hypotheses:
    """Searches a batch of any size in pieces of one of `compiled_shapes`."""
    batch, length = tf.unstack(tf.shape(source))
    lengths = _length_buckets(longest)
    place = tf.searchsorted(lengths, length[None])[0]
    columns = tf.gather(lengths, place)
    most_rows = tf.gather([_most_rows(length) for length in lengths], place)
    piece = tf.minimum(batch, most_rows)
    rows = tf.gather(BATCH_BUCKETS, tf.searchsorted(BATCH_BUCKETS, piece[None])[0])
    pieces = tf.maximum(1, (batch + rows - 1) // rows)
    padding = [[0, pieces * rows - batch], [0, columns - length]]
    padded = tf.pad(source, padding, constant_values=PAD_ID)
    found = tf.map_fn(
        search,
        tf.reshape(padded, (pieces, rows, columns)),
        fn_output_signature=Hypotheses(tf.int32, tf.int32, tf.float32, tf.float32),
        parallel_iterations=1,
    )
    return Hypotheses(*(_join(field)[:batch] for field in found))


def _join(pieces: tf.Tensor) -> tf.Tensor:
    """(P, B, ...) to (P·B, ...)."""
    return tf.reshape(pieces, tf.concat([[-1], tf.shape(pieces)[2:]], axis=0))
