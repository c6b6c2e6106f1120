"""Position encodings that act on scores. They depend on the distance of a query and a key.

A model with one of them also works on sequences longer than its training data. A call of these
layers returns its input; attention calls `rotate` or `bias`, which `PositionEncoding` describes.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import KerasTensor, ops

from tf_transformer.layers.position_encoding import PositionEncoding
from tf_transformer.layers.shape import Shape, flatten_positions, unflatten_positions


@keras.saving.register_keras_serializable(package="tf_transformer")
class RotaryPosition(PositionEncoding):
    """Rotates pairs of each query and key by angles m θᵢ (Su et al. 2021, "RoFormer").

    Dimensions 2i and 2i + 1 at position m turn by m · 10000^(-2i/K). So the product of a query at m
    and a key at n depends on their contents and on m - n. There are no weights.

    Raises:
        ValueError: if the size of a head is odd.

    Example:
        >>> queries = np.ones((1, 2, 5, 4), "float32")
        >>> RotaryPosition().rotate(queries, np.arange(5)).shape
        TensorShape([1, 2, 5, 4])
    """

    def rotate(self, heads: KerasTensor, positions: KerasTensor) -> KerasTensor:
        size = heads.shape[-1]
        if size % 2:
            raise ValueError(f"rotary positions rotate pairs: key_dim must be even, got {size}.")
        rates = np.repeat(10_000.0 ** (-np.arange(0, size, 2) / size), 2).astype("float32")
        angles = ops.cast(positions, "float32")[:, None] * ops.convert_to_tensor(rates)  # (T, K)
        cosines, sines = (ops.cast(f(angles), heads.dtype) for f in (ops.cos, ops.sin))
        # A product with a matrix of 0, 1 and -1 is exact. Moving every second number would take
        # nine times as long.
        quarter_turn = np.kron(np.eye(size // 2), [[0, 1], [-1, 0]]).astype("float32")
        rows = flatten_positions(heads)
        turned = ops.matmul(rows, ops.cast(quarter_turn, heads.dtype))  # (…, -x₂, x₁, …)
        return heads * cosines + unflatten_positions(turned, like=heads) * sines


@keras.saving.register_keras_serializable(package="tf_transformer")
class RelativePosition(PositionEncoding):
    """Adds qᵢ · a(j - i) / √K to the score of query i and key j (Shaw et al. 2018, equation 5).

    a has a learned vector for each distance from -k to k. Larger distances are clipped.

    Args:
        key_dim: size of a head's queries, K.
        max_relative_distance: the largest distance with its own vector, k.

    Example:
        >>> position = RelativePosition(key_dim=4)
        >>> position.build((None, None, 8))
        >>> queries = np.ones((1, 2, 5, 4), "float32")
        >>> position.bias(queries, np.arange(5), np.arange(5)[None]).shape
        TensorShape([1, 2, 5, 5])
    """

    # Differs from Shaw et al. 2018: values have no vectors of distances (its Table 4 finds no gain
    # from them), and all layers of an encoder or decoder share one table.

    def __init__(self, key_dim: int, max_relative_distance: int = 16, **kwargs: Any):
        super().__init__(**kwargs)
        self.key_dim = key_dim
        self.max_relative_distance = max_relative_distance

    def build(self, input_shape: Shape) -> None:
        self.table = self.add_weight(
            name="table", shape=(2 * self.max_relative_distance + 1, self.key_dim)
        )

    def bias(
        self, query: KerasTensor, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor:
        rows = _clipped_distances(query_positions, key_positions, self.max_relative_distance)
        vectors = ops.take(ops.cast(self.table, query.dtype), rows, axis=0)  # (1 or B, T, S, K)
        query = query * (1.0 / math.sqrt(self.key_dim))
        if vectors.shape[0] == 1:
            return ops.einsum("bhtk,tsk->bhts", query, vectors[0])
        return ops.einsum("bhtk,btsk->bhts", query, vectors)

    def get_config(self) -> dict[str, Any]:
        sizes = {"key_dim": self.key_dim, "max_relative_distance": self.max_relative_distance}
        return super().get_config() | sizes


@keras.saving.register_keras_serializable(package="tf_transformer")
class T5Position(PositionEncoding):
    """Adds a learned number per head and bucket of distances (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each. The other half grows in equal ratios up to
    `max_distance`. An encoder uses half of the buckets for earlier keys and half for later keys. A
    decoder has no later keys and uses all buckets for earlier ones. As in T5, all layers of an
    encoder or decoder share the numbers.

    Args:
        num_heads: number of heads, H.
        is_causal: whether later keys are hidden.
        num_buckets: number of buckets.
        max_distance: the last bucket holds this distance and all larger ones.

    Example:
        >>> position = T5Position(num_heads=2)
        >>> position.build((None, None, 8))
        >>> queries = np.ones((1, 2, 5, 4), "float32")
        >>> position.bias(queries, np.arange(5), np.arange(5)[None]).shape
        TensorShape([1, 2, 5, 5])
    """

    # Differs from T5: scores are divided by √K, as everywhere in this project.

    def __init__(
        self,
        num_heads: int,
        is_causal: bool = False,
        num_buckets: int = 32,
        max_distance: int = 128,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.is_causal = is_causal
        self.num_buckets = num_buckets
        self.max_distance = max_distance

    def build(self, input_shape: Shape) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.num_buckets, self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=input_shape[-1] ** -0.5),
        )

    def bias(
        self, query: KerasTensor, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor:
        rows = _clipped_distances(query_positions, key_positions, self.max_distance)
        of_distances = ops.take(self.table, self._buckets(), axis=0)  # (2 · max_distance + 1, H)
        return ops.transpose(ops.take(of_distances, rows, axis=0), (0, 3, 1, 2))  # (·, H, T, S)

    def _buckets(self) -> np.ndarray:
        """The bucket of each distance from -max_distance to max_distance; earlier is negative."""
        count = self.num_buckets if self.is_causal else self.num_buckets // 2
        exact = count // 2
        ratio = self.max_distance / exact
        # The first distances of the growing buckets, rounded up. Logarithms could round a boundary
        # down.
        first = [exact * ratio ** (i / (count - exact)) for i in range(1, count - exact)]
        distances = np.arange(self.max_distance + 1)
        earlier = np.minimum(distances, exact) + np.searchsorted(
            np.ceil(np.round(first, 6)), distances, side="right"
        )
        later = np.zeros(self.max_distance, int) if self.is_causal else count + earlier[1:]
        return np.concatenate([earlier[::-1], later]).astype("int32")

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_heads": self.num_heads,
            "is_causal": self.is_causal,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
        }


def alibi_slopes(num_heads: int) -> np.ndarray:
    """The slope of each head (H,): 2^(-8/H), 2^(-16/H), … (Press et al. 2022, section 3).

    If H is not a power of two, the slopes are chosen as in the code of the paper: first the slopes
    for the next lower power, then every second slope for the next higher power.
    """
    lower = 2 ** math.floor(math.log2(num_heads))
    slopes = 2.0 ** (-8.0 * np.arange(1, lower + 1) / lower)
    between = 2.0 ** (-4.0 * np.arange(1, 2 * lower + 1, 2) / lower)
    return np.concatenate([slopes, between[: num_heads - lower]]).astype("float32")


@keras.saving.register_keras_serializable(package="tf_transformer")
class AlibiPosition(PositionEncoding):
    """Adds -slope · |i - j| to the score of query i and key j (Press et al. 2022, "ALiBi").

    Each head has its own fixed slope, see `alibi_slopes`. An encoder treats earlier and later keys
    alike. There are no weights.

    Example:
        >>> queries = np.ones((1, 2, 3, 4), "float32")
        >>> np.asarray(AlibiPosition().bias(queries, np.arange(3), np.arange(3)[None]))[0, 0, 2]
        array([-0.125 , -0.0625, -0.    ], dtype=float32)
    """

    def bias(
        self, query: KerasTensor, query_positions: KerasTensor, key_positions: KerasTensor
    ) -> KerasTensor:
        distances = ops.abs(_distances(query_positions, key_positions))[:, None]  # (·, 1, T, S)
        slopes = ops.convert_to_tensor(alibi_slopes(query.shape[1])[:, None, None])
        return -slopes * ops.cast(distances, "float32")  # (·, H, T, S)


def _distances(query_positions: KerasTensor, key_positions: KerasTensor) -> KerasTensor:
    """Key position minus query position, int (1 or B, T, S)."""
    return key_positions[:, None, :] - query_positions[None, :, None]


def _clipped_distances(
    query_positions: KerasTensor, key_positions: KerasTensor, limit: int
) -> KerasTensor:
    """Distances clipped to [-limit, limit] and shifted to 0 … 2 · limit, int (1 or B, T, S)."""
    return ops.clip(_distances(query_positions, key_positions), -limit, limit) + limit
