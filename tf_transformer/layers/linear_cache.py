"""The cache of linear attention: sums over keys, which do not grow (Katharopoulos et al. 2020).

The sums of a hypothesis are not those of another, so they are reordered with the beam. The two
classes have the interfaces of `cache.py`; sums take the place of ancestor masks.
"""

from __future__ import annotations

from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.kernels.linear_attention import EPSILON, Rotation, features
from tf_transformer.layers.cache import KeyValue, LayerSize


class SumsOfKeys(NamedTuple):
    """The sums over all earlier positions of each hypothesis, in one layer, float32."""

    products: KerasTensor  # (B, W, G, K, K'): Σ φ(k) vᵀ, rotated
    features: KerasTensor  # (B, W, G, K): Σ φ(k)

    def append(self, new: KeyValue, rotate: Rotation | None = None) -> SumsOfKeys:
        """With one position for each hypothesis, `new` (B, G, W, K)."""
        keys, values = features(new.key), ops.cast(new.value, "float32")
        turned = keys if rotate is None else rotate(keys)
        return SumsOfKeys(
            self.products + ops.einsum("bgwk,bgwv->bwgkv", turned, values),
            self.features + ops.einsum("bgwk->bwgk", keys),
        )

    def attend(self, query: KerasTensor, rotate: Rotation | None = None) -> KerasTensor:
        """Attention (B, H, W, K') of queries (B, H, W, K), one for each hypothesis."""
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
        found = numerators / (denominators[..., None] + EPSILON)
        return ops.cast(ops.reshape(found, (batch, heads, beam_size, -1)), query.dtype)


class LinearCache(NamedTuple):
    """The cache of a decoder. Between steps the sums are in the state of the hypotheses."""

    layers: list[SumsOfKeys] | tuple = ()

    @classmethod
    def empty(cls, source: KerasTensor, num_layers: int, layer: LayerSize, rows) -> LinearCache:
        """Sums over no keys for the sentences of `source`, int (B, S); `rows` is not used."""
        key, value = layer._replace(dtype="float32").zeros(ops.shape(source)[0], 1)
        products = ops.einsum("bgtk,bgtv->btgkv", key, value)
        return cls([SumsOfKeys(products, key[:, None, :, 0])] * num_layers)

    @classmethod
    def of_prompt(cls, layers: list[SumsOfKeys], batch) -> LinearCache:
        """The sums (B, 1, ...) over a prompt."""
        return cls(layers)

    def share(self, batch, beam_size: int, visible=None) -> tuple[list[SumsOfKeys], LinearCache]:
        """The sums for each hypothesis, (B, W, ...), and an empty cache."""
        each = [
            SumsOfKeys(*(ops.repeat(x, beam_size, axis=1) for x in layer)) for layer in self.layers
        ]
        return each, LinearCache()

    def positions(self, beam_size: int, filled=0, index=None) -> KerasTensor:
        """There are no rows: int32 (1, 0)."""
        return ops.zeros((1, 0), "int32")

    def forget(self, sums: list[SumsOfKeys], oldest) -> tuple[list[SumsOfKeys], LinearCache]:
        """Sums cannot forget."""
        return sums, self

    def open(
        self, sums: list[SumsOfKeys], index: KerasTensor, filled=0
    ) -> tuple[list[SumsOfKeys], LinearCache]:
        """The cache for a step has the sums of the hypotheses."""
        return sums, LinearCache(sums)

    def mask(self, sums: list[SumsOfKeys], has_padding: bool = False) -> None:
        """Sums need no mask."""

    def close(
        self, sums: list[SumsOfKeys], layers: list[SumsOfKeys]
    ) -> tuple[list[SumsOfKeys], LinearCache]:
        """After a step, with the sums that it has returned."""
        return layers, LinearCache()

    def resize(self, sums: list[SumsOfKeys], rows) -> tuple[list[SumsOfKeys], LinearCache]:
        """Sums have no capacity."""
        return sums, self
