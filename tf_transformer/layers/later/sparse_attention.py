"""Self-attention to a neighbourhood (paper section 4), and strided attention.

Both take masks that hide keys, (B, 1, 1, T). In a decoder they are causal without a causal mask.
They never build a tensor of size T · T.
"""

import functools
from collections.abc import Callable
from typing import ClassVar, Unpack

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import HeadOutput, for_each_head
from tf_transformer.kernels.local_attention import Window
from tf_transformer.kernels.strided_attention import strided_allows
from tf_transformer.layers.attention import Attended, SelfAttention
from tf_transformer.layers.configured import AttentionOptions, Config
from tf_transformer.layers.mask_checks import mask_of_keys, require_mask
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.stored import Stored


class SparseAttention(SelfAttention):
    """The base class of self-attention whose visible keys depend on differences of positions.

    Let r be `attention_window`, the number of positions in the neighbourhood. With `is_causal`, a
    query attends to the last r positions with its own. Otherwise it attends to the positions j with
    |i - j| ≤ r / 2. `SelfAttention` describes the other arguments.
    """

    reads: ClassVar = SelfAttention.reads | {"attention_window"}

    def __init__(
        self, config: Config = None, is_causal: bool = False, **options: Unpack[AttentionOptions]
    ):
        super().__init__(config, is_causal, **options)
        self.size = size = self.config.attention_window
        self.neighbours = Window(size - 1, 0) if is_causal else Window(size // 2, size // 2)

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
        earlier: Stored | None = None,
    ) -> Attended:
        if earlier is not None:  # a step with a cache: `visible` gives the mask
            return super().call(x, attention_mask, training, positions, earlier)
        require_mask("attention_mask", attention_mask, x, x, self.config.num_heads)
        query, new = self.project(x)
        bias = None
        if positions is not None:
            query, new = positions.rotate(query), new._replace(key=positions.rotate(new.key))
            bias = positions.encoding.bias if positions.encoding.has_bias else None
        key, value = (for_each_head(part, query) for part in new)
        dropout = self.dropout.function(training)
        heads, weights = self._kernel()(
            query, key, value, mask=mask_of_keys(attention_mask, x), bias=bias, dropout=dropout
        )
        return Attended(self.concatenate(heads), weights, new)

    def _kernel(self) -> Callable[..., HeadOutput]:
        """A function of query, key, value, mask, bias and dropout."""
        raise NotImplementedError

    def visible(self, query_positions: KerasTensor, key_positions: KerasTensor) -> KerasTensor:
        offsets = key_positions[:, None, :] - query_positions[None, :, None]
        return self._allows(offsets)[:, None]

    def _allows(self, offsets: KerasTensor) -> KerasTensor:
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="tf_transformer")
class LocalAttention(SparseAttention):
    """Self-attention to the neighbourhood of each position (paper section 4).

    Attention weights are (B, H, T, N), where N is the size of the neighbourhood. Column m of row i
    is the weight of position i - before + m. With `is_causal`, `before` is r - 1, else r // 2.
    `SparseAttention` describes the arguments.

    Example:
        >>> layer = LocalAttention(num_heads=2, key_dim=4, attention_window=3, is_causal=True)
        >>> attended = layer(np.ones((3, 5, 8), "float32"))
        >>> attended.output.shape, attended.weights.shape
        (TensorShape([3, 5, 8]), TensorShape([3, 2, 5, 3]))
    """

    @property
    def window(self) -> int | None:
        return self.size if self.is_causal else None

    def by_position(self, weights: KerasTensor) -> KerasTensor:
        first = ops.arange(ops.shape(weights)[2]) - self.neighbours.before
        return _place(weights, first, 1)

    def _kernel(self) -> Callable[..., HeadOutput]:
        return functools.partial(kernels.current().local_attention, window=self.neighbours)

    def _allows(self, offsets: KerasTensor) -> KerasTensor:
        return self.neighbours.allows(offsets)


@keras.saving.register_keras_serializable(package="tf_transformer")
class StridedAttention(SparseAttention):
    """Self-attention to the neighbourhood, and to every r-th position (Child et al. 2019).

    With `is_causal`, later positions are hidden. Attention weights are (B, H, T, N + ⌈T / r⌉);
    `kernels/strided_attention.py` describes the columns. `SparseAttention` describes the
    arguments.

    Example:
        >>> layer = StridedAttention(num_heads=2, key_dim=4, attention_window=3, is_causal=True)
        >>> layer(np.ones((3, 5, 8), "float32")).output.shape
        TensorShape([3, 5, 8])
    """

    def by_position(self, weights: KerasTensor) -> KerasTensor:
        rows = ops.arange(ops.shape(weights)[2])
        near, far = ops.split(weights, [self.neighbours.size], axis=3)
        return _place(near, rows - self.neighbours.before, 1) + _place(
            far, rows % self.size, self.size
        )

    def _kernel(self) -> Callable[..., HeadOutput]:
        strided = kernels.current().strided_attention
        return functools.partial(strided, window=self.neighbours, stride=self.size)

    def _allows(self, offsets: KerasTensor) -> KerasTensor:
        return strided_allows(offsets, self.neighbours, self.size)


def _place(weights: KerasTensor, first: KerasTensor, step: int) -> KerasTensor:
    """Moves columns (B, H, T, N) to the positions of their keys, (B, H, T, T).

    Column m of row i is the weight of position first[i] + m · step. Positions outside 0 to T - 1
    are left out.
    """
    length, count = ops.shape(weights)[2:]
    keys = first[:, None] + step * ops.arange(count)  # (T, N)
    is_key = ops.equal(keys[..., None], ops.arange(length))  # (T, N, T)
    return ops.einsum("bhtn,tns->bhts", weights, ops.cast(is_key, weights.dtype))
