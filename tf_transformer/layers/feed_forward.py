"""Position-wise feed-forward network (paper section 3.3)."""

from typing import ClassVar, Unpack

import keras
from keras import KerasTensor

from tf_transformer.errors import InputError
from tf_transformer.layers.configured import Config, ConfiguredLayer, FeedForwardOptions, fields_in
from tf_transformer.layers.dense import Dense
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.shape import Shape, flatten_positions, unflatten_positions


@keras.saving.register_keras_serializable(package="tf_transformer")
class FeedForward(ConfiguredLayer):
    """FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ at every position (paper equation 2).

    Args:
        config: the configuration of the stack; see `ConfiguredLayer`.
        d_ff: size of the hidden layer, F.
        activation: relu is max(0, h); gelu is h Φ(h) (Hendrycks & Gimpel 2016); swish is h σ(h)
            (Ramachandran et al. 2017).
        dropout_rate: dropout on the hidden layer (`feed_forward_dropout_rate` of the
            configuration).
        **options: arguments of Keras' layers, such as `name` and `dtype`.

    Call arguments:
        x: float tensor (B, T, D), like the result.
        training: whether dropout is on.

    Raises:
        InputError: for an activation that the layer does not have.

    Example:
        >>> FeedForward(d_ff=16)(np.ones((3, 5, 8), "float32")).shape
        TensorShape([3, 5, 8])
    """

    reads: ClassVar = fields_in(FeedForwardOptions)
    activations: ClassVar[tuple[str, ...]] = ("relu", "gelu", "swish")

    def __init__(
        self,
        config: Config = None,
        *,
        dropout_rate: float | None = None,
        **options: Unpack[FeedForwardOptions],
    ):
        activation = options.get("activation")
        if activation not in (None, *self.activations):
            raise InputError(
                f"{type(self).__name__}: activation must be one of {', '.join(self.activations)}, "
                f"got {activation!r}."
            )
        super().__init__(config, {"feed_forward_dropout_rate": dropout_rate}, **options)
        self.hidden = self._hidden_layer()
        self.dropout = Dropout(self.config.feed_forward_dropout_rate, dtype=self.dtype_policy)

    def _hidden_layer(self) -> keras.layers.Layer:
        """Makes the layer for max(0, x W₁ + b₁): rows (R, D) to (R, F)."""
        activation, policy = self.config.activation, self.dtype_policy
        return Dense(self.config.d_ff, activation, dtype=policy, name="hidden")

    def build(self, input_shape: Shape) -> None:
        self.hidden.build(input_shape)
        size, policy = input_shape[-1], self.dtype_policy
        self.output_projection = Dense(size, dtype=policy, name="output")
        self.output_projection.build((*input_shape[:-1], self.config.d_ff))

    def call(self, x: KerasTensor, training: bool | None = None) -> KerasTensor:
        hidden = self.activate(self.hidden(flatten_positions(x)))  # (B·T, F)
        hidden = self.dropout(hidden, training=training)
        return unflatten_positions(self.output_projection(hidden), like=x)  # (B, T, D)

    def activate(self, hidden: KerasTensor) -> KerasTensor:
        """Activates the hidden layer (R, F); here its `Dense` layer has already done this."""
        return hidden
