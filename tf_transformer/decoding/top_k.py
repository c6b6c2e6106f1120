"""The best of many: exact, and fast on a CPU when a row is long."""

from keras import KerasTensor, ops

SMALLEST_BLOCK, LARGEST_BLOCK = 16, 64
BLOCKS_WORTHWHILE = 4  # times k; with fewer blocks nothing is saved
SORTED_AS_FAST = 512  # candidates; XLA sorts fewer than that in the time that blocks would take


def top_k(values: KerasTensor, k: int, compiled: bool = False) -> tuple[KerasTensor, KerasTensor]:
    """The k largest of each row, largest first; of equal ones that with the lower index.

    A row of V is cut into blocks. The k largest lie in the k blocks with the largest maxima
    (of equal maxima those that come first), so only those blocks are searched: V comparisons in
    a plain maximum, which is vectorised, and k blocks to sort, where `ops.top_k` would sort V.

    Args:
        values: float tensor (..., V), V and the rank known.
        k: at most V.
        compiled: whether a compiler will see this. XLA's sort takes so long, and its other
            operations start so fast, that the blocks found are then cut into blocks again.

    Returns:
        values (..., k), and their indices, int32 (..., k).
    """
    size = values.shape[-1]
    block = _block_size(size, k)
    if block is None:
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
    candidates = ops.reshape(candidates, (-1, k * block))
    if compiled and k * block > SORTED_AS_FAST:
        best, places = top_k(candidates, k, compiled)  # (R, k)
    else:
        best, places = ops.top_k(candidates, k)
    places = ops.cast(places, "int32")
    home = ops.take(ops.reshape(chosen, (-1,)), row * k + places // block, axis=0)
    indices = home * block + places % block
    return ops.reshape(best, (*leading, k)), ops.reshape(indices, (*leading, k))


def _block_size(size: int, k: int) -> int | None:
    """The largest divisor of `size` that makes good blocks, so that no row need be padded."""
    largest = min(LARGEST_BLOCK, size // (BLOCKS_WORTHWHILE * k))
    divisors = (b for b in range(largest, SMALLEST_BLOCK - 1, -1) if size % b == 0)
    return next(divisors, None)
