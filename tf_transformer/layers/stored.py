"""The keys and values that a layer attends to."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import Dropout, HeadOutput


class Stored(Protocol):
    """Keys and values of S positions in some layout.

    `KeyValue` is the plain layout. `decoding/` has the layouts that only searches need.
    """

    def with_new(self, new: KeyValue) -> Self:
        """Appends the keys and values of new positions."""

    def weighted(
        self,
        query: KerasTensor,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        dropout: Dropout | None = None,
    ) -> HeadOutput:
        """Attends with queries (B, H, T, K); see `kernels.attention.plain_attention`."""


class KeyValue(NamedTuple):
    """Keys and values as the layer projects them. They grow by concatenation."""

    key: KerasTensor  # (B, G, S, K), G heads of keys and values
    value: KerasTensor  # (B, G, S, K)

    def with_new(self, new: KeyValue) -> KeyValue:
        """Appends `new` (B, G, T, K) to (B, G, S, K): (B, G, S + T, K)."""
        return KeyValue(*(ops.concatenate(pair, axis=2) for pair in zip(self, new, strict=True)))

    def weighted(
        self,
        query: KerasTensor,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        dropout: Dropout | None = None,
    ) -> HeadOutput:
        """Attends with queries (B, H, T, K); see `kernels.attention.plain_attention`."""
        return kernels.current().attention(query, *self, mask, bias, dropout)
