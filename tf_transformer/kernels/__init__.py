"""The equations that take most of the time, each in a plain form and a tuned form.

Each module starts with the plain form, written as in the paper. The tuned form below it has the
same signature. Both give the same result up to rounding. Layers, training and search use the set
that `current()` returns. To choose a set:

    TF_TRANSFORMER_KERNELS=plain python train.py ...    # everything on the plain forms
    with kernels.use(kernels.PLAIN): ...                # the same in Python

Without a choice, a long training run measures which set is faster.

A `tf.function` keeps the set that was in use when it was traced.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.kernels import attention as _attention
from tf_transformer.kernels import consistency as _consistency
from tf_transformer.kernels import cross_entropy as _cross_entropy
from tf_transformer.kernels import dropout as _dropout
from tf_transformer.kernels import gather as _gather
from tf_transformer.kernels import gradient as _gradient
from tf_transformer.kernels import layer_norm as _layer_norm
from tf_transformer.kernels import linear_attention as _linear_attention
from tf_transformer.kernels import linear_recurrence as _linear_recurrence
from tf_transformer.kernels import local_attention as _local_attention
from tf_transformer.kernels import static_attention as _static_attention
from tf_transformer.kernels import strided_attention as _strided_attention
from tf_transformer.kernels import top_k as _top_k


class Kernels(NamedTuple):
    """A set of kernels: one function for each equation. The defaults are the tuned forms."""

    attention: Callable = _attention.attention
    static_attention: Callable = _static_attention.static_attention
    local_attention: Callable = _local_attention.local_attention
    strided_attention: Callable = _strided_attention.strided_attention
    linear_attention: Callable = _linear_attention.linear_attention
    linear_recurrence: Callable = _linear_recurrence.linear_recurrence
    layer_norm: Callable = _layer_norm.layer_norm
    rms_norm: Callable = _layer_norm.rms_norm
    dropout: Callable = _dropout.dropout
    cross_entropy: Callable = _cross_entropy.cross_entropy
    consistency: Callable = _consistency.consistency
    matmul_transposed: Callable = _gradient.matmul_transposed
    top_k: Callable = _top_k.top_k
    rank_tokens: Callable = _top_k.rank_tokens
    gather: Callable = _gather.plain_gather


PLAIN = Kernels(
    attention=_attention.plain_attention,
    static_attention=_static_attention.plain_static_attention,
    local_attention=_local_attention.plain_local_attention,
    strided_attention=_strided_attention.plain_strided_attention,
    linear_attention=_linear_attention.plain_linear_attention,
    linear_recurrence=_linear_recurrence.plain_linear_recurrence,
    layer_norm=_layer_norm.plain_layer_norm,
    rms_norm=_layer_norm.plain_rms_norm,
    dropout=_dropout.plain_dropout,
    cross_entropy=_cross_entropy.plain_cross_entropy,
    consistency=_consistency.plain_consistency,
    matmul_transposed=_gradient.plain_matmul_transposed,
    top_k=_top_k.plain_top_k,
    rank_tokens=_top_k.plain_rank_tokens,
)
TUNED = Kernels()
XLA = TUNED._replace(top_k=_top_k.xla_top_k, rank_tokens=_top_k.xla_rank_tokens)
SETS = {"plain": PLAIN, "tuned": TUNED, "xla": XLA}

_chosen = os.environ.get("TF_TRANSFORMER_KERNELS", "")
if _chosen and _chosen not in SETS:
    raise InputError(
        f"TF_TRANSFORMER_KERNELS must be plain, tuned or xla, got {_chosen!r}. Set one of them, or "
        "unset the variable."
    )
_current = SETS[_chosen or "tuned"]


def current() -> Kernels:
    """Returns the set in use."""
    return _current


def for_xla() -> Kernels:
    """Returns the set for a function that XLA compiles: `XLA` in place of `TUNED`."""
    return XLA if _current is TUNED else _current


def possible_names() -> list[str]:
    """The names of the sets that a training run may choose from; the first is the default.

    If the environment variable or `use` selects a set, the list has this set only. Its name is ""
    if it is not in `SETS`.
    """
    if _current is TUNED and not _chosen:
        return ["tuned", "plain"]
    return [next((name for name, kernels in SETS.items() if kernels is _current), "")]


@contextlib.contextmanager
def use(kernels: Kernels) -> Iterator[None]:
    """Makes a set current in all threads until the context ends."""
    global _current
    before, _current = _current, kernels
    try:
        yield
    finally:
        _current = before
