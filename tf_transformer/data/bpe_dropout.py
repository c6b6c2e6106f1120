"""BPE-dropout: training divides words into random pieces, new ones in each epoch."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.text.special_ids import BLANK
from tf_transformer.text.tokenizer import Tokenizer

Pair = tuple[int, int]
_NO_MERGE = np.iinfo(np.int64).max


class MergeTable:
    """The merges of byte pair encoding, for lookups of whole arrays.

    `merges` leads from two ids to the id of the joined piece. The smallest result is merged first.
    `blank` is the id of the character that starts a word.
    """

    def __init__(self, merges: Mapping[Pair, int], vocabulary_size: int, blank: int):
        self.blank = blank
        self._size = vocabulary_size
        keyed = {left * vocabulary_size + right: made for (left, right), made in merges.items()}
        self._keys, self._made = np.array([*sorted(keyed.items()), (_NO_MERGE, 0)], np.int64).T
        halves = {made: pair for pair, made in merges.items()}
        known: dict[int, list[int]] = {}

        def characters(token: int) -> list[int]:
            if token not in known:
                parts = map(characters, halves.get(token, ()))
                known[token] = list(itertools.chain.from_iterable(parts)) or [token]
            return known[token]

        # By id, the ids of its characters.
        self.characters = IdRows.from_lists([characters(token) for token in range(vocabulary_size)])

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "MergeTable":
        """Makes the table of a tokenizer; an `InputError` if its pieces are unigrams or bytes."""
        merges = tokenizer.merges()
        return cls(merges, tokenizer.vocabulary_size, tokenizer.piece_to_id(BLANK))

    def made(self, ids: np.ndarray, words: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The ids that those at `at` and the next id of their word are merged into, int64 (N,).

        `_NO_MERGE` stands for no merge.
        """
        after = np.minimum(at + 1, len(ids) - 1)
        keys = ids[at].astype(np.int64) * self._size + ids[after]
        places = np.searchsorted(self._keys, keys)
        is_pair = (words[at] == words[after]) & (after > at)
        return np.where(is_pair & (self._keys[places] == keys), self._made[places], _NO_MERGE)


@dataclass(frozen=True)
class BpeDropout:
    """Encodes the words of id rows again, and leaves out random merges (Provilkov et al. 2020).

    Each word starts as characters. In each step, every possible merge is left out with probability
    `rate`, and the first of the remaining merges is made. A word is complete when a step has no
    merge. The pieces depend on seed, window number and examples only.
    """

    tables: Mapping[str, MergeTable]  # for each name of a batch, the merges of its vocabulary
    rate: float  # probability that a step leaves out a merge
    max_length: int  # a row that would have more ids stays as it is
    seed: int

    def __call__(self, number: int, examples: TokenExamples) -> TokenExamples:
        rng, rows = np.random.default_rng((self.seed, number, 3)), examples.rows
        return TokenExamples({x: self._encoded(rows[x], self.tables[x], rng) for x in rows})

    def _encoded(self, rows: IdRows, table: MergeTable, rng: np.random.Generator) -> IdRows:
        places, ends = table.characters.positions(rows.ids)
        characters = table.characters.ids[places]
        row_ends = ends[np.cumsum(rows.lengths) - 1]
        starts_word = characters == table.blank
        starts_word[[0, *row_ends[:-1]]] = True
        words = np.cumsum(starts_word) - 1
        pieces, words_of_pieces = self._pieces(characters, words, table, rng)
        # The words of a row follow one another, so a row ends with its last word.
        splits = np.searchsorted(words_of_pieces, words[row_ends - 1], side="right")
        kept = [
            new if len(new) <= self.max_length else old
            for new, old in zip(np.split(pieces, splits[:-1]), rows.split(), strict=True)
        ]
        return IdRows(np.concatenate(kept), np.array(list(map(len, kept))))

    def _pieces(
        self, ids: np.ndarray, words: np.ndarray, table: MergeTable, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Merges characters (N,) into pieces (N',); their words have rising numbers (N,), (N',)."""
        complete: list[np.ndarray] = []
        ids = ids.copy()  # merged in place
        made = table.made(ids, words, np.arange(len(ids)))
        while len(ids):
            allowed = np.where(rng.random(len(ids)) < self.rate, _NO_MERGE, made)
            starts = np.flatnonzero(np.diff(words, prepend=-1))
            first = np.repeat(
                np.minimum.reduceat(allowed, starts), np.diff(starts, append=len(ids))
            )
            is_complete = first == _NO_MERGE
            complete.append(np.stack([ids, words])[:, is_complete])
            at = np.flatnonzero((allowed == first) & ~is_complete)
            at = at[np.flatnonzero(np.diff(words[at], prepend=-1))]  # one merge in each word
            ids[at] = made[at]
            stays = ~is_complete
            stays[at + 1] = False
            at = np.cumsum(stays)[at] - 1
            ids, words, made = ids[stays], words[stays], made[stays]
            for changed in (at, at[at > 0] - 1):
                made[changed] = table.made(ids, words, changed)
        pieces, numbers = np.concatenate(complete, axis=1)
        order = np.argsort(numbers, kind="stable")
        return pieces[order], numbers[order]
