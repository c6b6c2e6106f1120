"""The coverage penalty: source tokens with little attention (Wu et al. 2016, equation 14)."""

from keras import KerasTensor, ops

from tf_transformer.errors import InputError


def require_no_penalty(beta: float) -> None:
    """Checks that β is 0, for a model that attends to no source.

    Raises:
        InputError: if β is not 0.
    """
    if beta:
        raise InputError(
            "decode.coverage_penalty needs a model that attends to a source. For a language model "
            f"it must be 0, got {beta}."
        )


def no_coverage(batch: int | KerasTensor, beam_size: int, length: int | KerasTensor) -> KerasTensor:
    """Makes the attention to S source tokens before the first step: zeros (B, W, S)."""
    return ops.zeros((batch, beam_size, length), "float32")


def coverage_penalty(coverage: KerasTensor, is_source: KerasTensor, beta: float) -> KerasTensor:
    """β Σ ln(min(coverage, 1)) over the source tokens (Wu et al. 2016, equation 14).

    Args:
        coverage: float tensor (B, W, S), the attention to each source token, added up over steps.
        is_source: bool tensor (B, 1, S), False at padding.
        beta: β.

    Returns:
        float32 tensor (B, W), at most 0. Add it to the scores of hypotheses that end.
    """
    covered = ops.clip(coverage, 1e-9, 1.0)
    return beta * ops.sum(ops.where(is_source, ops.log(covered), 0.0), axis=-1)
