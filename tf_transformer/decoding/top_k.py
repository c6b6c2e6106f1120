"""The best of many: exact, and fast on a CPU when a row is long."""

from keras import KerasTensor, ops

SMALLEST_BLOCK, LARGEST_BLOCK = 16, 64
BLOCKS_WORTHWHILE = 4  # times k; with fewer blocks nothing is saved


def top_k(values: KerasTensor, k: int) -> tuple[KerasTensor, KerasTensor]:
    """The k largest of each row, largest first; of equal ones that with the lower index.

    A row of V is cut into blocks. The k largest lie in the k blocks with the largest maxima
    (of equal maxima those that come first), so only those blocks are searched: V comparisons in
    a plain maximum, which is vectorised, and k blocks to sort, where `ops.top_k` would sort V.

    Args:
        values: float tensor (..., V), V and the rank known.
        k: at most V.

    Returns:
        values (..., k), and their indices, int32 (..., k).
    """
    size = values.shape[-1]
    block = _block_size(size)
    if block is None or size // block < BLOCKS_WORTHWHILE * k:
        best, indices = ops.top_k(values, k)
        return best, ops.cast(indices, "int32")
    leading = ops.shape(values)[:-1]
    blocks = ops.reshape(values, (-1, size // block, block))  # (R, V/b, b)
    _, chosen = ops.top_k(ops.max(blocks, axis=-1), k)  # (R, k)
    # In order of index, so that equal values stay so too.
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)
    row = ops.arange(ops.shape(chosen)[0], dtype="int32")[:, None]
    blocks_of_all = ops.reshape(blocks, (-1, block))  # (R·V/b, b)
    candidates = ops.take(blocks_of_all, row * (size // block) + chosen, axis=0)  # (R, k, b)
    best, places = ops.top_k(ops.reshape(candidates, (-1, k * block)), k)  # (R, k)
    places = ops.cast(places, "int32")
    home = ops.take(ops.reshape(chosen, (-1,)), row * k + places // block, axis=0)
    indices = home * block + places % block
    return ops.reshape(best, (*leading, k)), ops.reshape(indices, (*leading, k))


def _block_size(size: int) -> int | None:
    """The largest divisor of `size` that makes good blocks, so that no row need be padded."""
    divisors = (b for b in range(LARGEST_BLOCK, SMALLEST_BLOCK - 1, -1) if size % b == 0)
    return next(divisors, None)
