"""The logits of the steps of a search, from a matrix that is transposed only once."""

import contextlib
from collections.abc import Callable, Iterator

from keras import KerasTensor, ops

from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.shape import flatten_positions, unflatten_positions

_STORED: dict[int, KerasTensor] = {}  # matrices that callers store, by the id of the embedding


def transposed(embedding: TokenEmbedding) -> KerasTensor:
    """Transposes the matrix of `TokenEmbedding.logits` to (D, V).

    A product that transposes its matrix takes up to three times as long.
    """
    _, matrix = embedding.factors(ops.zeros((1, embedding.d_model)))
    return ops.transpose(ops.cast(matrix, embedding.compute_dtype))


@contextlib.contextmanager
def with_transposed(embedding: TokenEmbedding, matrix: KerasTensor) -> Iterator[None]:
    """Searches that are traced in this context use `matrix` (D, V), which the caller stores."""
    _STORED[id(embedding)] = matrix
    try:
        yield
    finally:
        del _STORED[id(embedding)]


def step_logits(embedding: TokenEmbedding) -> Callable[[KerasTensor], KerasTensor]:
    """Returns a function like `embedding.logits` for many small calls: (..., D) to (..., V)."""
    if embedding.int8 is not None:
        return embedding.logits
    matrix = _STORED.get(id(embedding))
    matrix = transposed(embedding) if matrix is None else matrix

    def logits(x: KerasTensor) -> KerasTensor:
        rows, _ = embedding.factors(x)
        return unflatten_positions(ops.matmul(flatten_positions(rows), matrix), like=x)

    return logits
