"""The recurrence of recurrent layers without products of states."""

from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import WithGradient, with_gradient
from tf_transformer.kernels.local_attention import zero_padded


def plain_linear_recurrence(factors: KerasTensor, terms: KerasTensor) -> KerasTensor:
    """c_t = f_t ∘ c_{t-1} + b_t for t from 1 to T, where c_0 = 0.

    The factors f, the terms b and the result c are (B, T, D).
    """

    def step(before: KerasTensor, new: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        factor, term = ops.unstack(new, 2)
        state = factor * before + term
        return state, state

    by_position = ops.einsum("nbtd->tnbd", ops.stack([factors, terms]))
    _, states = ops.scan(step, ops.zeros_like(terms[:, 0]), by_position)
    return ops.einsum("tbd->btd", states)


@with_gradient
def linear_recurrence(factors: KerasTensor, terms: KerasTensor) -> WithGradient:
    """`plain_linear_recurrence` with its own gradient: the same recurrence from right to left."""
    states = plain_linear_recurrence(factors, terms)

    def gradient(upstream: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        after = zero_padded(factors[:, 1:], 0, 1, axis=1)
        reversed_sums = plain_linear_recurrence(ops.flip(after, 1), ops.flip(upstream, 1))
        of_terms = ops.flip(reversed_sums, 1)
        return of_terms * zero_padded(states[:, :-1], 1, 0, axis=1), of_terms

    return states, gradient
