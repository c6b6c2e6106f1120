"""The coverage penalty: source tokens with little attention (Wu et al. 2016, equation 14)."""

from keras import KerasTensor, ops

from tf_transformer.decoding.problem import StepOptions
from tf_transformer.errors import InputError


def require_no_penalty(beta: float) -> None:
    """Raises an `InputError` if β is not 0, for a model that attends to no source."""
    if beta:
        raise InputError(
            "decode.coverage_penalty needs a model that attends to a source. For a language model "
            f"it must be 0, got {beta}."
        )


def no_coverage(source: KerasTensor, options: StepOptions) -> KerasTensor | tuple:
    """The attention to source ids (B, S) before the first step: zeros (B, W, S); () if not used."""
    if not options.coverage_penalty:
        return ()
    batch, length = ops.shape(source)
    return ops.zeros((batch, options.beam_size, length), "float32")


def coverage_penalty(coverage: KerasTensor, is_source: KerasTensor, beta: float) -> KerasTensor:
    """β Σ ln(min(coverage, 1)) over the source tokens (Wu et al. 2016, equation 14).

    The coverage (B, W, S) is the attention to each source token, added up over steps. `is_source`
    is bool (B, 1, S), False at padding. The result is float32 (B, W), at most 0.
    """
    covered = ops.clip(coverage, 1e-9, 1.0)
    return beta * ops.sum(ops.where(is_source, ops.log(covered), 0.0), axis=-1)
