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
LENGTH_BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128, 256, 512)
BATCH_BUCKETS = (1, 4, 8, 16, 32, 64)


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


def _in_buckets(search: tf.types.experimental.GenericFunction, source, longest: int) -> Hypotheses:
    """Pads a batch to a size that is compiled already, or will be for all like it."""
    batch, length = tf.shape(source)[0], tf.shape(source)[1]
    rows = _bucket(batch, BATCH_BUCKETS)
    columns = _bucket(length, (*(b for b in LENGTH_BUCKETS if b < longest), longest))
    padded = tf.pad(source, [[0, rows - batch], [0, columns - length]], constant_values=PAD_ID)
    found = search(padded)
    return Hypotheses(*(field[:batch] for field in found))


def _bucket(size: tf.Tensor, buckets: tuple[int, ...]) -> tf.Tensor:
    """The smallest bucket that holds `size`, or the next multiple of the largest."""
    largest = buckets[-1]
    place = tf.searchsorted(tf.constant(buckets), size[None])[0]
    beyond = (size + largest - 1) // largest * largest
    return tf.where(size > largest, beyond, tf.gather((*buckets, largest), place))
