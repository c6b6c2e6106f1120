"""The size of a text: pairs and bytes, before there is a tokenizer."""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tf_transformer.data.examples import Texts
from tf_transformer.text.tokenizer import smallest_vocabulary

MOST_PAIRS = 5_000_000  # that are counted
_ALL, _EACH = 50_000, 20  # characters: of all pairs up to here, and then of each 20th


class TextSize(NamedTuple):
    """The size of a training text."""

    pairs: int  # `MOST_PAIRS` for a longer text
    bytes: int  # of the longer side in UTF-8, all these pairs together
    smallest_vocabulary: int = 0  # the smallest one that has the characters of the pairs

    @classmethod
    def of(cls, stream: Iterable[Texts]) -> "TextSize":
        """The size of a stream, of which at most `MOST_PAIRS` pairs are read."""
        pairs, source_bytes, target_bytes = 0, 0, 0
        characters = Counter[str]()
        for source, target in itertools.islice(stream, MOST_PAIRS):
            pairs += 1
            source_bytes += len(source.encode("utf-8", "surrogatepass"))
            target_bytes += len(target.encode("utf-8", "surrogatepass"))
            if pairs <= _ALL or pairs % _EACH == 0:
                characters.update(unicodedata.normalize("NFC", f"{source} {target}"))
        return cls(pairs, max(source_bytes, target_bytes), smallest_vocabulary(characters))
