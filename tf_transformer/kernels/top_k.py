"""The best of many: exact, and fast on a CPU where there are many."""

from collections.abc import Sequence
from typing import NamedTuple

from keras import KerasTensor, ops

SMALLEST_BLOCK, LARGEST_BLOCK = 16, 64
BLOCKS_WORTHWHILE = 4  # times k; with fewer blocks nothing is saved
SORTED_AS_FAST = 512  # values; XLA sorts fewer than that in the time that blocks would take


class Blocks(NamedTuple):
    """Values (G, R, V), their rows cut into blocks of b.

    The k largest of a group lie in the k blocks with the largest maxima (of equal maxima those
    that come first), so only those blocks are searched: R·V comparisons in a plain maximum, which
    is vectorised, and k blocks to sort, where `ops.top_k` would sort R·V values.
    """

    values: KerasTensor  # (G·R, V/b, b)
    maxima: KerasTensor  # (G, R, V/b)

    @classmethod
    def of(cls, values: KerasTensor, k: int) -> "Blocks":
        """Cuts values (G, R, V), R and V known, into blocks that are good for finding k."""
        _, rows, size = values.shape
        block = _block_size(size, rows, k)
        blocks = ops.reshape(values, (-1, size // block, block))
        return cls(blocks, ops.reshape(ops.max(blocks, axis=-1), (-1, rows, size // block)))

    def top_k(
        self, k: int, added: Sequence[KerasTensor] = (), compiled: bool = False
    ) -> tuple[KerasTensor, KerasTensor]:
        """The k largest of each group, largest first; of equal ones that with the lower index.

        Args:
            k: at most R·V.
            added: float tensors (G, R), added to each value of a row, one after the other.
            compiled: whether a compiler will see this. XLA's sort takes so long, and its other
                operations start so fast, that what is left to sort is cut into blocks again.

        Returns:
            values (G, k), and their indices among all R·V of the group, int32 (G, k).
        """
        (_, rows, count), block = self.maxima.shape, self.values.shape[-1]
        maxima = sum((term[..., None] for term in added), start=self.maxima)
        best, chosen = _largest(ops.reshape(maxima, (-1, rows * count)), k, compiled)
        if block == 1:
            return best, chosen
        # In order of index, so that equal values stay so too.
        chosen = ops.sort(chosen, axis=-1)  # (G, k)
        group = ops.arange(ops.shape(chosen)[0], dtype="int32")[:, None]
        flat = ops.reshape(self.values, (-1, block))  # (G·R·V/b, b)
        candidates = ops.take(flat, group * (rows * count) + chosen, axis=0)  # (G, k, b)
        row = group * rows + chosen // count  # of all G·R
        for term in added:
            candidates = candidates + ops.take(ops.reshape(term, (-1,)), row, axis=0)[..., None]
        best, places = _largest(ops.reshape(candidates, (-1, k * block)), k, compiled)
        home = ops.take(ops.reshape(chosen, (-1,)), group * k + places // block, axis=0)
        return best, home * block + places % block


def top_k(values: KerasTensor, k: int, compiled: bool = False) -> tuple[KerasTensor, KerasTensor]:
    """The k largest of each row, largest first; of equal ones that with the lower index.

    Args:
        values: float tensor (..., V), V and the rank known.
        k: at most V.
        compiled: whether a compiler will see this; see `Blocks.top_k`.

    Returns:
        values (..., k), and their indices, int32 (..., k).
    """
    leading, size = ops.shape(values)[:-1], values.shape[-1]
    found = Blocks.of(ops.reshape(values, (-1, 1, size)), k).top_k(k, compiled=compiled)
    best, indices = (ops.reshape(field, (*leading, k)) for field in found)
    return best, indices


def _largest(values: KerasTensor, k: int, compiled: bool) -> tuple[KerasTensor, KerasTensor]:
    """`top_k` of rows (R, N) that are cut into blocks only if that pays."""
    if compiled and values.shape[1] > SORTED_AS_FAST and _block_size(values.shape[1], 1, k) > 1:
        return top_k(values, k, compiled)
    best, indices = ops.top_k(values, k)
    return best, ops.cast(indices, "int32")


def _block_size(size: int, rows: int, k: int) -> int:
    """The largest divisor of `size` that makes good blocks, so that no row need be padded; or 1."""
    largest = min(LARGEST_BLOCK, rows * size // (BLOCKS_WORTHWHILE * k))
    divisors = (b for b in range(largest, SMALLEST_BLOCK - 1, -1) if size % b == 0)
    return next(divisors, 1)
