"""Patterns of self-attention: which positions a query attends to, and at what cost.

A pattern has three parts, which `MultiHeadAttention`, the models and cached decoding call:

    attend(...)         attention over whole sequences
    mask(...)           the positions that a query of a decoding step attends to
    window, layout(...) the positions that a cache keeps, and its layout

Patterns with less than all positions are causal by themselves in a decoder. The masks that they
get hide keys, such as padding, and nothing of size T · T is built.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import Dropout
from tf_transformer.kernels.local_attention import Bias, Window
from tf_transformer.kernels.strided_attention import strided_allows
from tf_transformer.layers.cache import GrowingCache, KeyValue, StaticCache
from tf_transformer.layers.linear_cache import LinearCache, SumsOfKeys
from tf_transformer.layers.masks import causal_mask
from tf_transformer.layers.position_encoding import PositionEncoding, Positions


class PatternOutput(NamedTuple):
    """The result of a pattern's attention."""

    heads: KerasTensor  # (B, H, T, K)
    weights: KerasTensor | tuple  # in the layout of the pattern
    cache: Any  # what later positions attend to


@keras.saving.register_keras_serializable(package="tf_transformer")
class Pattern:
    """Every position; a mask (B, H, T, T) says which (the paper).

    Attributes:
        window: the latest positions, those of the query included, that a cache keeps; None: all.
    """

    window: int | None = None

    def handles(self, cache: Any) -> bool:
        """Whether `attend` serves a call with this cache, which may be None."""
        return False

    def attend(
        self,
        query: KerasTensor,
        new: KeyValue,
        mask: KerasTensor | None,
        positions: Positions | None,
        cache: Any,
        dropout: Dropout | None,
    ) -> PatternOutput:
        """Attention over whole sequences, or with a cache that only this pattern has.

        Args:
            query: float tensor (B, H, T, K), not rotated.
            new: keys and values (B, G, T, K), not rotated.
            mask: bool tensor (B, 1, 1, T), True = may be attended to.
            positions: of the T positions, for an encoding that acts on scores.
            cache: of earlier positions, or None.
            dropout: applied to the weights.
        """
        raise NotImplementedError

    def by_position(self, weights: Any) -> Any:
        """The attention weights as (B, H, T, T); () if there are none.

        Args:
            weights: of self-attention over whole sequences, in the layout of the pattern.
        """
        return weights

    def mask(self, query_positions: KerasTensor, key_positions: KerasTensor) -> KerasTensor | None:
        """Positions (T,) and (1 or B, S) to bool (1 or B, 1, T, S); None: all earlier ones."""
        return None

    def causal_mask(self, length: Any) -> KerasTensor | None:
        """The mask that a decoder needs for whole sequences of T positions."""
        return causal_mask(length)

    def layout(self, static_shapes: bool) -> Any:
        """The class of a decoder's cache."""
        return StaticCache if static_shapes else GrowingCache

    def capacity(self, steps: Any) -> Any:
        """The steps that a static cache of a search with so many steps has room for."""
        if self.window is None:
            return steps
        is_known = isinstance(steps, int)
        return min(self.window, steps) if is_known else ops.minimum(self.window, steps)

    def get_config(self) -> dict:
        """The arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Pattern":
        """The pattern with these arguments."""
        return cls(**config)


class SparsePattern(Pattern):
    """The base of patterns that are given by differences of positions.

    Args:
        size: r, the positions around a query that it attends to.
        is_causal: whether it attends to no later position: then to the last r, its own included;
            else to those with |i - j| ≤ r / 2.
    """

    def __init__(self, size: int, is_causal: bool):
        self.size, self.is_causal = size, is_causal
        self.neighbours = Window(size - 1, 0) if is_causal else Window(size // 2, size // 2)

    def handles(self, cache):
        return cache is None

    def attend(self, query, new, mask, positions, cache, dropout):
        bias = None
        if positions is not None:
            query, new = positions.rotate(query), new._replace(key=positions.rotate(new.key))
            bias = positions.encoding.bias if _has_bias(positions) else None
        key, value = (_for_each_head(x, query) for x in new)
        heads, weights = self._attend(query, key, value, _of_keys(mask, query), bias, dropout)
        return PatternOutput(heads, weights, new)

    def _attend(self, query, key, value, mask, bias: Bias | None, dropout):
        raise NotImplementedError

    def mask(self, query_positions, key_positions):
        offsets = key_positions[:, None, :] - query_positions[None, :, None]
        return self._allows(offsets)[:, None]

    def _allows(self, offsets: KerasTensor) -> KerasTensor:
        raise NotImplementedError

    def causal_mask(self, length):
        return None

    def get_config(self):
        return {"size": self.size, "is_causal": self.is_causal}


@keras.saving.register_keras_serializable(package="tf_transformer")
class LocalPattern(SparsePattern):
    """The neighbourhood of each position (paper section 4); see `SparsePattern`.

    Attention weights are (B, H, T, N), N the size of the neighbourhood; column m of row i is the
    weight of position i - before + m, with `before` r - 1, or r // 2 with both sides.
    """

    def __init__(self, size: int, is_causal: bool):
        super().__init__(size, is_causal)
        self.window = size if is_causal else None

    def by_position(self, weights):
        first = ops.arange(ops.shape(weights)[2]) - self.neighbours.before
        return _place(weights, first, 1)

    def _attend(self, query, key, value, mask, bias, dropout):
        local = kernels.current().local_attention
        return local(query, key, value, self.neighbours, mask, bias, dropout)

    def _allows(self, offsets):
        return self.neighbours.allows(offsets)


@keras.saving.register_keras_serializable(package="tf_transformer")
class StridedPattern(SparsePattern):
    """The neighbourhood, and every r-th position before it (Child et al. 2019).

    In an encoder, every r-th position after it, too. Attention weights are (B, H, T, N + ⌈T / r⌉);
    `kernels/strided_attention.py` says which column is which position.
    """

    def by_position(self, weights):
        rows = ops.arange(ops.shape(weights)[2])
        near, far = ops.split(weights, [self.neighbours.size], axis=3)
        return _place(near, rows - self.neighbours.before, 1) + _place(
            far, rows % self.size, self.size
        )

    def _attend(self, query, key, value, mask, bias, dropout):
        strided = kernels.current().strided_attention
        return strided(query, key, value, self.neighbours, self.size, mask, bias, dropout)

    def _allows(self, offsets):
        return strided_allows(offsets, self.neighbours, self.size)


@keras.saving.register_keras_serializable(package="tf_transformer")
class LinearPattern(Pattern):
    """Every position, by sums over keys instead of a softmax (Katharopoulos et al. 2020).

    There are no attention weights: they are (). A cache holds sums, whatever the length.

    Args:
        is_causal: whether a query attends to no later position.
    """

    def __init__(self, is_causal: bool):
        self.is_causal = is_causal

    def handles(self, cache):
        return True

    def attend(self, query, new, mask, positions, cache, dropout):
        if dropout is not None:
            raise ValueError("linear attention has no weights that dropout could act on.")
        if positions is not None and _has_bias(positions):
            raise ValueError(
                f"linear attention has no scores that {type(positions.encoding).__name__} could "
                "change. Use an encoding that is added to embeddings, or rotary."
            )
        rotate = None if positions is None else positions.rotate
        if cache is not None:
            sums = cache.append(new, rotate)
            return PatternOutput(sums.attend(query, rotate), (), sums)
        key, value = (_for_each_head(x, query) for x in new)
        linear = kernels.current().linear_attention
        heads, sums = linear(query, key, value, self.is_causal, _of_keys(mask, query), rotate)
        each = query.shape[1] // new.key.shape[1]
        return PatternOutput(heads, (), SumsOfKeys(*(x[:, None, ::each] for x in sums)))

    def causal_mask(self, length):
        return None

    def layout(self, static_shapes):
        return LinearCache

    def get_config(self):
        return {"is_causal": self.is_causal}


def _has_bias(positions: Positions) -> bool:
    return type(positions.encoding).bias is not PositionEncoding.bias


def _for_each_head(x: KerasTensor, query: KerasTensor) -> KerasTensor:
    """Keys or values of G heads, (B, G, T, K), repeated for the H heads of the queries."""
    each = query.shape[1] // x.shape[1]
    return x if each == 1 else ops.repeat(x, each, axis=1)


def _place(weights: KerasTensor, first: KerasTensor, step: int) -> KerasTensor:
    """Columns (B, H, T, N) at the positions of their keys, (B, H, T, T).

    Column m of row i is the weight of position first[i] + m · step; others than 0 to T - 1 drop.
    """
    length, count = ops.shape(weights)[2:]
    keys = first[:, None] + step * ops.arange(count)  # (T, N)
    is_key = ops.equal(keys[..., None], ops.arange(length))  # (T, N, T)
    return ops.einsum("bhtn,tns->bhts", weights, ops.cast(is_key, weights.dtype))


def _of_keys(mask: KerasTensor | None, query: KerasTensor) -> KerasTensor | None:
    """A mask that hides keys, (B, 1, 1, T), as (B, T)."""
    if mask is None:
        return None
    if len(mask.shape) != 4 or mask.shape[1] != 1 or mask.shape[2] != 1:
        raise ValueError(
            "local, strided and linear attention take a mask (B, 1, 1, T) that hides keys, got "
            f"{tuple(mask.shape)}. In a decoder they are causal without a mask."
        )
    shape = ops.shape(query)
    return ops.broadcast_to(mask[:, 0, 0], (shape[0], shape[2]))


# The values of `model.attention`, made of `model.attention_window` and whether it is causal.
PATTERNS: dict[str, Callable[[int, bool], Pattern]] = {
    "full": lambda size, is_causal: Pattern(),
    "local": LocalPattern,
    "strided": StridedPattern,
    "linear": lambda size, is_causal: LinearPattern(is_causal),
}
