"""Self-attention by sums over keys, whose size is constant (Katharopoulos et al. 2020)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.kernels.attention import Dropout, HeadOutput, for_each_head
from tf_transformer.kernels.linear_attention import EPSILON, Rotation, features
from tf_transformer.layers.attention import Attended, SelfAttention
from tf_transformer.layers.mask_checks import mask_of_keys, require_mask
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.stored import KeyValue


class SumsOfKeys(NamedTuple):
    """Sums over all earlier positions of each hypothesis in one layer, float32."""

    products: KerasTensor  # (B, W, G, K, K'): Σ φ(k) vᵀ, rotated
    features: KerasTensor  # (B, W, G, K): Σ φ(k)

    def with_new(self, new: KeyValue, rotate: Rotation | None = None) -> SumsOfKeys:
        """Adds one new position (B, G, W, K) for each hypothesis to the sums."""
        keys, values = features(new.key), ops.cast(new.value, "float32")
        turned = keys if rotate is None else rotate(keys)
        return SumsOfKeys(
            self.products + ops.einsum("bgwk,bgwv->bwgkv", turned, values),
            self.features + ops.einsum("bgwk->bwgk", keys),
        )

    def weighted(
        self,
        query: KerasTensor,
        mask: KerasTensor | None = None,
        bias: KerasTensor | None = None,
        dropout: Dropout | None = None,
        rotate: Rotation | None = None,
    ) -> HeadOutput:
        """Attends with one query for each hypothesis: (B, H, W, K) to (B, H, W, K'), no weights."""
        batch, heads, beam_size, size = ops.shape(query)
        groups = self.features.shape[2]
        queries = features(query)
        turned = queries if rotate is None else rotate(queries)
        queries, turned = (
            ops.reshape(x, (batch, groups, heads // groups, beam_size, size))
            for x in (queries, turned)
        )
        numerators = ops.einsum("bgewk,bwgkv->bgewv", turned, self.products)
        denominators = ops.einsum("bgewk,bwgk->bgew", queries, self.features)
        output = numerators / (denominators[..., None] + EPSILON)
        output = ops.reshape(output, (batch, heads, beam_size, self.products.shape[-1]))
        return HeadOutput(ops.cast(output, query.dtype), ())


@keras.saving.register_keras_serializable(package="tf_transformer")
class LinearAttention(SelfAttention):
    """Self-attention to every position, by sums over keys in place of a softmax.

    Katharopoulos et al. 2020, equations 4 and 9. The mask must hide keys for all queries alike,
    (B, 1, 1, T). There are no attention weights, so `Attended.weights` is (). `SelfAttention`
    describes the arguments.

    Raises:
        ValueError: for dropout of attention weights, and for position encodings with a bias.

    Example:
        >>> layer = LinearAttention(num_heads=2, key_dim=4, is_causal=True)
        >>> layer(np.ones((3, 5, 8), "float32")).output.shape
        TensorShape([3, 5, 8])
    """

    stores_rows: ClassVar = False

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
        earlier: Any = None,
    ) -> Attended:
        if self.dropout.function(training) is not None:
            raise ValueError(
                "linear attention has no attention weights that dropout could act on: expected "
                f"attention_dropout_rate 0, got {self.dropout.rate}."
            )
        if positions is not None and positions.encoding.has_bias:
            raise ValueError(
                f"linear attention has no scores that {type(positions.encoding).__name__} could "
                "change. Use model.position sinusoidal, learned, rotary or none."
            )
        rotate = None if positions is None else positions.rotate
        query, new = self.project(x)
        if earlier is not None:
            sums = earlier.with_new(new, rotate)
            heads = sums.weighted(query, rotate=rotate).heads
            return Attended(self.concatenate(heads), (), sums)
        require_mask("attention_mask", attention_mask, x, x, self.config.num_heads)
        mask = mask_of_keys(attention_mask, x)
        key, value = (for_each_head(part, query) for part in new)
        linear = kernels.current().linear_attention
        heads, sums = linear(query, key, value, self.is_causal, mask, rotate)
        shared = query.shape[1] // new.key.shape[1]  # heads of queries per head of keys
        stored = SumsOfKeys(*(part[:, None, ::shared] for part in sums))
        return Attended(self.concatenate(heads), (), stored)

    def nothing(self, batch: int | KerasTensor) -> SumsOfKeys:
        config, groups = self.config, self.config.num_key_value_heads
        return SumsOfKeys(
            ops.zeros((batch, 1, groups, config.key_dim, config.value_dim), "float32"),
            ops.zeros((batch, 1, groups, config.key_dim), "float32"),
        )
