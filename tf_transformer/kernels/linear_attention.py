"""Linear attention: sums over keys in place of a softmax (Katharopoulos et al. 2020)."""

from collections.abc import Callable
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.kernels.gradient import plain_matmul_transposed
from tf_transformer.kernels.local_attention import zero_padded

Rotation = Callable[[KerasTensor], KerasTensor]

EPSILON = 1e-6  # added to the denominator, as in the authors' code
CHUNK = 64  # positions that attend to each other directly


class LinearSums(NamedTuple):
    """The two sums over keys that a query needs, float32."""

    products: KerasTensor  # (B, H, K, K'): Σ φ(k) vᵀ
    features: KerasTensor  # (B, H, K): Σ φ(k)


class LinearOutput(NamedTuple):
    """The output of linear attention, and its sums over keys."""

    heads: KerasTensor  # (B, H, T, K')
    sums: LinearSums  # over all keys


def features(x: KerasTensor) -> KerasTensor:
    """φ(x) = elu(x) + 1 in float32, which is positive (Katharopoulos et al. 2020, equation 7)."""
    return ops.elu(ops.cast(x, "float32")) + 1.0


def plain_linear_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    is_causal: bool,
    mask: KerasTensor | None = None,
    rotate: Rotation | None = None,
) -> LinearOutput:
    """Σⱼ (φ(qᵢ)·φ(kⱼ)) vⱼ / Σⱼ φ(qᵢ)·φ(kⱼ) (Katharopoulos et al. 2020, equations 4 and 9).

    Queries and keys are (B, H, T, K), values (B, H, T, K') and the mask (B, T), True = may be
    attended to. With `is_causal`, each position attends only to itself and to earlier positions.

    Rotary positions `rotate` φ(q) and φ(k) in the numerator only, so that the denominator stays
    positive (Su et al. 2021, equation 19).
    """
    queries, keys, values = _prepared(query, key, value, mask)
    turned = keys if rotate is None else rotate(keys)
    numerators = plain_matmul_transposed(queries if rotate is None else rotate(queries), turned)
    denominators = plain_matmul_transposed(queries, keys)
    if is_causal:
        positions = ops.arange(ops.shape(query)[2])
        earlier = ops.cast(positions[:, None] >= positions[None, :], "float32")  # (T, T)
        numerators, denominators = numerators * earlier, denominators * earlier
    heads = ops.matmul(numerators, values) / (
        ops.sum(denominators, axis=-1, keepdims=True) + EPSILON
    )
    sums = LinearSums(ops.einsum("bhtk,bhtv->bhkv", turned, values), ops.sum(keys, axis=2))
    return LinearOutput(ops.cast(heads, query.dtype), sums)


def _prepared(
    query: KerasTensor, key: KerasTensor, value: KerasTensor, mask: KerasTensor | None
) -> tuple[KerasTensor, KerasTensor, KerasTensor]:
    """φ(q), φ(k) and v in float32; φ(k) is 0 for hidden keys."""
    queries, keys = features(query), features(key)
    if mask is not None:
        keys = keys * ops.cast(mask, "float32")[:, None, :, None]
    return queries, keys, ops.cast(value, "float32")


def linear_attention(
    query: KerasTensor,
    key: KerasTensor,
    value: KerasTensor,
    is_causal: bool,
    mask: KerasTensor | None = None,
    rotate: Rotation | None = None,
) -> LinearOutput:
    """`plain_linear_attention` with memory and time linear in T.

    Causal attention cuts the sequence into chunks. Positions attend to their own chunk directly,
    and to earlier chunks through running sums.
    """
    queries, keys, values = _prepared(query, key, value, mask)
    turned_queries, turned = (queries, keys) if rotate is None else map(rotate, (queries, keys))
    if not is_causal:
        sums = LinearSums(ops.einsum("bhtk,bhtv->bhkv", turned, values), ops.sum(keys, axis=2))
        heads = ops.matmul(turned_queries, sums.products) / (
            ops.matmul(queries, sums.features[..., None]) + EPSILON
        )
        return LinearOutput(ops.cast(heads, query.dtype), sums)
    numerators, products = _causal_numerators(turned_queries, turned, values)
    running = ops.cumsum(keys, axis=2)
    denominators = ops.sum(queries * running, axis=-1, keepdims=True)
    heads = ops.cast(numerators / (denominators + EPSILON), query.dtype)
    return LinearOutput(heads, LinearSums(products, ops.sum(keys, axis=2)))


def _causal_numerators(
    queries: KerasTensor, keys: KerasTensor, values: KerasTensor
) -> tuple[KerasTensor, KerasTensor]:
    """Σ_{j ≤ i} (qᵢ·kⱼ) vⱼ for each position i, and Σ kⱼ vⱼᵀ over all."""
    batch, heads, length, _ = ops.shape(queries)
    count = (length + CHUNK - 1) // CHUNK

    def chunks(x: KerasTensor) -> KerasTensor:
        x = zero_padded(x, 0, count * CHUNK - length, axis=2)
        return ops.reshape(x, (batch, heads, count, CHUNK, ops.shape(x)[3]))

    queries, keys, values = map(chunks, (queries, keys, values))
    places = ops.arange(CHUNK)
    earlier = ops.cast(places[:, None] >= places[None, :], "float32")
    inside = ops.matmul(plain_matmul_transposed(queries, keys) * earlier, values)
    after = ops.cumsum(ops.einsum("bhntk,bhntv->bhnkv", keys, values), axis=2)
    before = zero_padded(after[:, :, :-1], 1, 0, axis=2)
    numerators = inside + ops.matmul(queries, before)
    shape = (batch, heads, count * CHUNK, ops.shape(values)[4])
    return ops.reshape(numerators, shape)[:, :, :length], after[:, :, -1]
