"""Word numbers of ids, for a model that masks whole words."""

import re
from collections.abc import Sequence

import numpy as np

from tf_transformer.text.special_ids import BLANK, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer


class WordNumbers:
    """Numbers the words in a row of a tokenizer's ids: for each id, from 1; 0 for special ids.

    A word begins after a space. A word also begins where letters or digits meet other characters,
    so a full stop is a word. Text without spaces, such as Japanese, is one word between punctuation
    characters.

    Example:
        >>> tokenizer = Tokenizer.train(["a house, ein Haus"], vocabulary_size=300)
        >>> ids = tokenizer.encode("Haus, house")
        >>> words = WordNumbers(tokenizer)(ids)
        >>> [tokenizer.decode([i for i, n in zip(ids, words) if n == k]) for k in (1, 2, 3)]
        ['Haus', ',', 'house']
    """

    def __init__(self, tokenizer: Tokenizer):
        pieces = tokenizer.pieces
        self._after_blank = np.array([piece.startswith(BLANK) for piece in pieces])
        self._is_blank = np.array([piece == BLANK for piece in pieces])
        self._has_letters = np.array(list(map(_has_letters, pieces)))

    def __call__(self, ids: Sequence[int] | np.ndarray) -> list[int]:
        row = np.asarray(ids, np.int64)
        letters, before = self._has_letters[row], row[:-1]
        starts = self._after_blank[row]
        starts[1:] |= (letters[1:] != letters[:-1]) & ~self._is_blank[before]
        starts[:1] = True
        return np.where(row > UNK_ID, np.cumsum(starts), 0).tolist()


def _has_letters(piece: str) -> bool:
    """Whether a piece has a letter or digit. Bytes of characters beyond ASCII count as letters."""
    if byte := re.fullmatch("<0x(..)>", piece):
        value = int(byte[1], 16)
        return value >= 128 or chr(value).isalnum()
    return any(map(str.isalnum, piece))
