"""BPE-dropout: training divides pieces at random, anew in each epoch."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tf_transformer.data.tokens import IdRows
from tf_transformer.special_ids import PAD_ID


@dataclass(frozen=True)
class Merges:
    """The tree of merges that makes each piece, by the leaves of the tree.

    The merge after a leaf is the one that joins this leaf with the next. It makes a node that
    covers `before` leaves up to this one, and `after` leaves behind it.

    Attributes:
        leaves: of each id.
        nodes: id that the merge after each leaf makes; the last leaf of a piece has none, 0.
        before: leaves of the merge's left half.
        after: leaves of its right half; 0 after the last leaf.
    """

    leaves: IdRows
    nodes: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, pairs: Mapping[int, tuple[int, int]], vocabulary_size: int) -> "Merges":
        """The trees of all ids.

        Args:
            pairs: by the id of a piece, the two ids that are merged into it. Other ids are leaves.
            vocabulary_size: number of ids.

        Example:
            >>> merges = Merges.of({6: (4, 5), 7: (6, 4)}, vocabulary_size=8)
            >>> merges.leaves.padded(np.array([7])).tolist()
            [[4, 5, 4]]
        """
        trees: dict[int, list[tuple[int, int, int, int]]] = {}

        def tree(token: int) -> list[tuple[int, int, int, int]]:
            """(leaf, node, before, after) of each leaf."""
            if token not in trees:
                if token in pairs:
                    left, right = map(tree, pairs[token])
                    joint = (left[-1][0], token, len(left), len(right))
                    trees[token] = [*left[:-1], joint, *right]
                else:
                    trees[token] = [(token, 0, 0, 0)]
            return trees[token]

        rows = [tree(token) for token in range(vocabulary_size)]
        flat = np.array([leaf for row in rows for leaf in row], np.int32).T
        lengths = np.array(list(map(len, rows)))
        return cls(IdRows(flat[0], lengths), *flat[1:])


class BpeDropout:
    """Divides pieces of ids (Provilkov et al. 2020): each merge is left out with a probability.

    A piece stays whole if all merges of its tree take place; otherwise the largest nodes whose
    merges all take place stay. In the paper, words are encoded without these merges, and others may
    take their place; here the merges are those of the full encoding, which needs no text.

    Args:
        pairs: by the id of a piece, the two ids that are merged into it.
        vocabulary_size: number of ids.
        rate: probability that a merge is left out.
        max_length: a row that would have more ids stays as it is.
        seed: the pieces are a function of the seed and the number of the batch.

    Example:
        >>> dropout = BpeDropout({6: (4, 5), 7: (6, 4)}, 8, rate=1.0, max_length=9, seed=1)
        >>> dropout(0, {"source": np.array([[7, 4, 2], [6, 2, 0]])})["source"].tolist()
        [[4, 5, 4, 4, 2], [4, 5, 2, 0, 0]]
    """

    def __init__(
        self,
        pairs: Mapping[int, tuple[int, int]],
        vocabulary_size: int,
        rate: float,
        max_length: int,
        seed: int,
    ):
        self._merges = Merges.of(pairs, vocabulary_size)
        self._rate = rate
        self._max_length = max_length
        self._seed = seed

    def __call__(self, number: int, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Batch `number`, by name ids (B, L), with divided pieces: ids (B, L')."""
        rng = np.random.default_rng((self._seed, number, 3))
        return {name: self._divided(ids, rng) for name, ids in batch.items()}

    def _divided(self, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        is_real = ids != PAD_ID
        pieces, counts = self._pieces(ids[is_real], rng)
        ends = np.concatenate([[0], np.cumsum(counts)])[np.cumsum(is_real.sum(1))]
        rows = np.split(pieces, ends[:-1])
        kept = [
            row if len(row) <= self._max_length else old[real]
            for row, old, real in zip(rows, ids, is_real, strict=True)
        ]
        lengths = np.array(list(map(len, kept)))
        return IdRows(np.concatenate(kept), lengths).padded(np.arange(len(kept)))

    def _pieces(self, ids: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of ids (N,), one after another, and how many each has."""
        merges = self._merges
        places, ends = merges.leaves.positions(ids)
        leaf = np.arange(len(places))
        before, after = merges.before[places], merges.after[places]
        # A merge takes place if none of the merges in its halves, nor itself, is left out.
        left_out = np.concatenate([[0], np.cumsum(rng.random(len(places)) < self._rate)])
        joined = (after > 0) & (left_out[leaf + after] == left_out[leaf - before + 1])
        starts = ~np.concatenate([[False], joined[:-1]])
        found = merges.leaves.ids[places].astype(np.int32)
        at = np.flatnonzero(joined)
        first, last = at - before[at] + 1, at + after[at]
        largest = starts[first] & ~joined[last]
        found[first[largest]] = merges.nodes[places[at[largest]]]
        return found[starts], np.diff(np.cumsum(starts)[ends - 1], prepend=0)
