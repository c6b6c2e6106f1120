"""The size of a text: pairs and bytes, before there is a tokenizer."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from tf_transformer.data.examples import Texts

MOST_PAIRS = 5_000_000  # that are counted


class TextSize(NamedTuple):
    """The size of a training text.

    Attributes:
        pairs: their number; `MOST_PAIRS` for a longer text.
        bytes: of the longer side in UTF-8, all these pairs together.

    Example:
        >>> TextSize.of([("twenty-one", "einundzwanzig"), ("one", "eins")])
        TextSize(pairs=2, bytes=17)
    """

    pairs: int
    bytes: int

    @classmethod
    def of(cls, stream: Iterable[Texts]) -> "TextSize":
        """The size of a stream, of which at most `MOST_PAIRS` pairs are read."""
        pairs, source_bytes, target_bytes = 0, 0, 0
        for source, target in itertools.islice(stream, MOST_PAIRS):
            pairs += 1
            source_bytes += len(source.encode("utf-8", "surrogatepass"))
            target_bytes += len(target.encode("utf-8", "surrogatepass"))
        return cls(pairs, max(source_bytes, target_bytes))
