"""The logits of a search's steps, by a matrix that is transposed once."""

import contextlib
from collections.abc import Callable, Iterator

from keras import KerasTensor, ops

from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions

_STORED: dict[int, KerasTensor] = {}  # matrices that callers store, by embedding


def transposed(embedding: TokenEmbedding) -> KerasTensor:
    """The matrix (D, V) that `TokenEmbedding.logits` multiplies with.

    A product that transposes a matrix takes up to three times as long.
    """
    _, matrix = embedding.factors(ops.zeros((1, embedding.d_model)))
    return ops.transpose(ops.cast(matrix, embedding.compute_dtype))


@contextlib.contextmanager
def with_transposed(embedding: TokenEmbedding, matrix: KerasTensor) -> Iterator[None]:
    """Searches that are traced in this context use a matrix that the caller stores."""
    _STORED[id(embedding)] = matrix
    try:
        yield
    finally:
        del _STORED[id(embedding)]


def step_logits(embedding: TokenEmbedding) -> Callable[[KerasTensor], KerasTensor]:
    """`embedding.logits` for many small calls: from (..., D) to (..., V)."""
    matrix = _STORED.get(id(embedding))
    matrix = transposed(embedding) if matrix is None else matrix

    def logits(x: KerasTensor) -> KerasTensor:
        rows, _ = embedding.factors(x)
        return unflatten_positions(ops.matmul(flatten_positions(rows), matrix), like=x)

    return logits
