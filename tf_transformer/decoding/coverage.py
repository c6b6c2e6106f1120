"""The penalty on source tokens that got little attention (Wu et al. 2016, equation 14)."""

from keras import KerasTensor, ops

from tf_transformer.errors import InputError


def require_no_penalty(beta: float) -> None:
    """Raises an `InputError` for a penalty of a model that attends to no source."""
    if beta:
        raise InputError(
            "decode.coverage_penalty needs a model that attends to a source; for a language model "
            "it must be 0."
        )


def no_coverage(batch: int | KerasTensor, beam_size: int, length: int | KerasTensor) -> KerasTensor:
    """The attention that S source tokens have received before the first step, (B, W, S)."""
    return ops.zeros((batch, beam_size, length), "float32")


def coverage_penalty(coverage: KerasTensor, is_source: KerasTensor, beta: float) -> KerasTensor:
    """β Σ ln(min(attention that a source token received, 1)).

    Args:
        coverage: float tensor (B, W, S), the attention that source tokens have received.
        is_source: bool tensor (B, 1, S), False at padding.
        beta: β.

    Returns:
        float32 tensor (B, W), at most 0, to be added to the scores of hypotheses that end.
    """
    covered = ops.clip(coverage, 1e-9, 1.0)
    return beta * ops.sum(ops.where(is_source, ops.log(covered), 0.0), axis=-1)
