"""The k largest of many values, and the k likeliest next tokens (paper section 6.1)."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.machine import thresholds


class Ranking(NamedTuple):
    """The k largest values, largest first. Of equal values, the lower index comes first."""

    values: KerasTensor  # float32 (..., k)
    indices: KerasTensor  # int32 (..., k)


def plain_top_k(values: KerasTensor, k: int) -> Ranking:
    """The k largest values of each row of a tensor (..., V); V and the number of axes are known."""
    if keras.backend.backend() == "torch":  # its top-k orders equal values at random
        indices = ops.argsort(-values, axis=-1)[..., :k]
        return Ranking(ops.take_along_axis(values, indices, axis=-1), ops.cast(indices, "int32"))
    best, indices = ops.top_k(values, k)
    return Ranking(best, ops.cast(indices, "int32"))


def plain_rank_tokens(logits: KerasTensor, totals: KerasTensor | None, k: int) -> Ranking:
    """The k largest values of totals + log softmax(logits) among all tokens of a group's rows.

    Logits are float32 (G, R, V) for G sentences with R hypotheses each; R and V are known. The
    totals (G, R) are log-probabilities of the hypotheses so far; None: zeros. The fields of the
    result are (G, k), and an index is row · V + token.
    """
    log_p = ops.log_softmax(logits, axis=-1)
    if totals is not None:
        log_p = log_p + totals[..., None]
    return plain_top_k(ops.reshape(log_p, (-1, logits.shape[1] * logits.shape[2])), k)


def top_k(values: KerasTensor, k: int, xla: bool = False) -> Ranking:
    """`plain_top_k` that sorts a few blocks of each row in place of the whole row.

    For XLA, rows are cut into blocks twice: XLA sorts slowly, and its other operations start fast.
    """
    leading, size = ops.shape(values)[:-1], values.shape[-1]
    ranked = _Blocks.cut(ops.reshape(values, (-1, 1, size)), k).top_k(k, (), xla)
    return Ranking(*(ops.reshape(field, (*leading, k)) for field in ranked))


def rank_tokens(
    logits: KerasTensor, totals: KerasTensor | None, k: int, xla: bool = False
) -> Ranking:
    """`plain_rank_tokens` that normalizes only the k best, by one number for each row.

    For XLA, exponentials are summed in one pass over the logits.
    """
    if logits.shape[1] == 1 and totals is None:  # the order does not depend on the normalizer
        values, tokens = top_k(logits, k, xla)  # (G, 1, k)
        highest = values[..., :1]
        values = values - highest - _log_sum(logits, highest, xla)
        return Ranking(*(ops.reshape(field, (-1, k)) for field in (values, tokens)))
    blocks = _Blocks.cut(logits, k)
    highest = ops.max(blocks.maxima, axis=-1, keepdims=True)  # (G, R, 1)
    rest = -_log_sum(logits, highest, xla)[..., 0]
    if totals is not None:
        rest = totals + rest
    # Logits may be large: the highest is subtracted before anything small is added.
    return blocks.top_k(k, (-highest[..., 0], rest), xla)


xla_top_k = functools.partial(top_k, xla=True)
xla_rank_tokens = functools.partial(rank_tokens, xla=True)


def _log_sum(logits: KerasTensor, highest: KerasTensor, xla: bool) -> KerasTensor:
    """Log Σ exp(logit - highest) over the last axis, which remains with size 1."""
    if xla:
        return ops.log(ops.sum(ops.exp(logits - highest), axis=-1, keepdims=True))
    # The likeliest token's probability is 1 / Σ exp(logit - highest). A softmax is one operation.
    return -ops.log(ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True))


class _Blocks(NamedTuple):
    """Values (G, R, V) whose rows are cut into blocks of b values.

    The k largest values of a group lie in the k blocks with the largest maxima. Of blocks with
    equal maxima, the first ones count. Finding the maxima takes one vectorised pass over R·V
    values. Then k blocks are sorted in place of R·V values.
    """

    values: KerasTensor  # (G·R, V/b, b)
    maxima: KerasTensor  # (G, R, V/b)

    @classmethod
    def cut(cls, values: KerasTensor, k: int) -> "_Blocks":
        """Cuts values (G, R, V) into blocks of a size that suits k; R and V are known."""
        _, rows, size = values.shape
        block = _block_size(size, rows, k)
        blocks = ops.reshape(values, (-1, size // block, block))
        return cls(blocks, ops.reshape(ops.max(blocks, axis=-1), (-1, rows, size // block)))

    def top_k(self, k: int, added: Sequence[KerasTensor], xla: bool) -> Ranking:
        """The k largest of the R·V values of each group, (G, k).

        The `added` tensors (G, R) are added to each value of a row, in order.
        """
        (_, rows, count), block = self.maxima.shape, self.values.shape[-1]
        maxima = sum((term[..., None] for term in added), start=self.maxima)
        best, chosen = _sort(ops.reshape(maxima, (-1, rows * count)), k, xla)
        if block == 1:
            return Ranking(best, chosen)
        # Sorted by index, so that equal values stay in the order of their indices.
        chosen = ops.sort(chosen, axis=-1)  # (G, k)
        group = ops.arange(ops.shape(chosen)[0], dtype="int32")[:, None]
        flat = ops.reshape(self.values, (-1, block))  # (G·R·V/b, b)
        candidates = ops.take(flat, group * (rows * count) + chosen, axis=0)  # (G, k, b)
        row = group * rows + chosen // count  # among all G·R
        for term in added:
            candidates = candidates + ops.take(ops.reshape(term, (-1,)), row, axis=0)[..., None]
        best, places = _sort(ops.reshape(candidates, (-1, k * block)), k, xla)
        home = ops.take(ops.reshape(chosen, (-1,)), group * k + places // block, axis=0)
        return Ranking(best, home * block + places % block)


def _sort(values: KerasTensor, k: int, xla: bool) -> Ranking:
    """The k largest of each row (R, N). Rows are cut into blocks for XLA only, where it pays."""
    many = values.shape[1] > thresholds.XLA_SORTS_WITHOUT_BLOCKS
    if xla and many and _block_size(values.shape[1], 1, k) > 1:
        return top_k(values, k, xla)
    return plain_top_k(values, k)


def _block_size(size: int, rows: int, k: int) -> int:
    """The best block size: the largest divisor of `size` in the allowed range, or 1.

    A divisor needs no padding. Multiples of 8 are preferred, because vector instructions take 8
    values at a time.
    """
    largest = min(thresholds.LARGEST_BLOCK, rows * size // (thresholds.BLOCKS_PER_RESULT * k))
    divisors = [b for b in range(thresholds.SMALLEST_BLOCK, largest + 1) if size % b == 0]
    return max(divisors, key=lambda b: (b % 8 == 0, b), default=1)
