"""A codec as TensorFlow operations."""

from collections.abc import Mapping

import tensorflow as tf

from tf_transformer.text.graph_tokenizer import GraphTokenizer
from tf_transformer.text.tokenizer import Tokenizer


class GraphCodec(tf.Module):
    """A `Codec` for string tensors. `Codec.in_graph` makes it, and exports contain it.

    Args:
        tokenizers: the tokenizers by field. A tokenizer for all fields has the name "".

    Example:
        >>> from tf_transformer.text.codec import Codec
        >>> codec = Codec(Tokenizer.train(["a house", "ein Haus"], 300)).in_graph()
        >>> codec["target"].decode(codec["source"].encode(["a house"])).numpy()
        array([b'a house'], dtype=object)
    """

    def __init__(self, tokenizers: Mapping[str, Tokenizer]):
        super().__init__()
        self._fields = tuple(tokenizers)
        self._tokenizers = list(map(GraphTokenizer, tokenizers.values()))

    def __getitem__(self, field: str) -> GraphTokenizer:
        """Returns the tokenizer of a field."""
        return self._tokenizers[0 if "" in self._fields else self._fields.index(field)]
