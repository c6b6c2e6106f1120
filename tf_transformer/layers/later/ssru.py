"""The simpler simple recurrent unit, in place of the self-attention of a decoder."""

from typing import Any, ClassVar, NamedTuple, Unpack

import keras
from keras import KerasTensor, ops

from tf_transformer import kernels
from tf_transformer.errors import InputError
from tf_transformer.layers.attention import Attended, SelfAttention
from tf_transformer.layers.configured import Config, ConfiguredLayer, KerasOptions
from tf_transformer.layers.dense import ConcatenatedInitializer, Dense
from tf_transformer.layers.mask_checks import mask_of_keys, require_mask
from tf_transformer.layers.position_encoding import Positions
from tf_transformer.layers.shape import Shape, flatten_positions, unflatten_positions


class CellState(NamedTuple):
    """The state of an `SSRU` after the newest position of each hypothesis."""

    cell: KerasTensor  # (B, W, D), float32


@keras.saving.register_keras_serializable(package="tf_transformer")
class SSRU(SelfAttention):
    """Running means with gates, of which a search keeps one state of constant size.

    f_t = σ(W_f x_t + b_f), c_t = f_t ∘ c_{t-1} + (1 - f_t) ∘ W x_t, and the output is max(0, c_t)
    (Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
    Translation", as in Marian). W and W_f are one product. There are no heads, no attention
    weights, and no projection of the output. The order of positions is in the state, so rotary
    positions have no effect.

    `SelfAttention` describes the call. The mask is (B, 1, 1, T). A hidden position leaves the state
    as it is.

    Args:
        config: the configuration of the stack, of which nothing is read.
        is_causal: must be true: the unit reads from left to right.
        **options: arguments of Keras' layers, such as `name` and `dtype`.

    Raises:
        InputError: without `is_causal`.
        ValueError: for position encodings with a bias.

    Example:
        >>> layer = SSRU()
        >>> layer(np.ones((3, 5, 8), "float32")).output.shape
        TensorShape([3, 5, 8])
    """

    stores_rows: ClassVar = False
    reads: ClassVar = frozenset()

    def __init__(
        self, config: Config = None, is_causal: bool = True, **options: Unpack[KerasOptions]
    ):
        # Not that of `Attention`, which has heads. Keras must not cast the float32 state.
        ConfiguredLayer.__init__(self, config, autocast=False, **options)
        self.is_causal = is_causal
        if not is_causal:
            raise InputError(
                "an SSRU reads from left to right: expected a decoder, whose attention is causal, "
                "got an encoder. Use decoder_attention ssru, and another attention."
            )

    def build(self, x_shape: Shape) -> None:
        size, fill = x_shape[-1], [keras.initializers.GlorotUniform() for _ in range(2)]
        self.projection = Dense(
            2 * size,
            use_bias=False,
            kernel_initializer=ConcatenatedInitializer([size] * 2, fill),
            dtype=self.dtype_policy,
            name="value_forget",
        )
        self.projection.build(x_shape)
        self.forget_bias = self.add_weight((size,), "zeros", autocast=False, name="forget_bias")

    def call(
        self,
        x: KerasTensor,
        attention_mask: KerasTensor | None = None,
        training: bool | None = None,
        positions: Positions | None = None,
        earlier: Any = None,
    ) -> Attended:
        if positions is not None and positions.encoding.has_bias:
            raise ValueError(
                f"an SSRU has no scores that {type(positions.encoding).__name__} could change. Use "
                "model.position sinusoidal, learned, rotary or none."
            )
        projected = unflatten_positions(self.projection(flatten_positions(x)), like=x)
        value, gate = ops.split(ops.cast(projected, "float32"), 2, axis=-1)
        forget = ops.sigmoid(gate + ops.cast(self.forget_bias, "float32"))
        new = (1.0 - forget) * value
        if earlier is not None:
            state = forget * earlier.cell + new
            return self._attended(state, state)
        require_mask("attention_mask", attention_mask, x, x, 1)
        if (mask := mask_of_keys(attention_mask, x)) is not None:
            forget = ops.where(mask[..., None], forget, 1.0)
            new = ops.where(mask[..., None], new, 0.0)
        states = kernels.current().linear_recurrence(forget, new)
        return self._attended(states, states[:, -1:])

    def _attended(self, states: KerasTensor, newest: KerasTensor) -> Attended:
        return Attended(ops.cast(ops.relu(states), self.compute_dtype), (), CellState(newest))

    def nothing(self, batch: int | KerasTensor) -> CellState:
        return CellState(ops.zeros((batch, 1, self.projection.units // 2), "float32"))
