"""The decoder layer and the decoder stack (paper section 3.1), whole and one step at a time."""

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.attention import KeyValue, MultiHeadAttention
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.residual import Residual, layer_norm


@keras.saving.register_keras_serializable(package="tf_transformer")
class DecoderLayer(keras.layers.Layer):
    """Masked self-attention, cross-attention to the memory, feed-forward (paper section 3.1).

    `call` runs over whole targets, as in training. `step` runs over one position of W
    hypotheses a sentence, as in search; it is built from the same sub-layers.

    Args:
        num_heads: number of attention heads, H.
        key_dim: size of a head's queries and keys, K.
        d_ff: size of the feed-forward hidden layer, F.
        value_dim: size of a head's values; `key_dim` when None.
        dropout_rate: dropout on each sub-layer's output.
        attention_dropout_rate: dropout on attention weights.
        feed_forward_dropout_rate: dropout inside the feed-forward network.
        attention_bias: whether attention projections have biases.
        norm_first: pre-norm instead of the paper's post-norm.

    Call arguments:
        x: float tensor (B, T, D).
        memory: float tensor (B, S, D), the encoder's output.
        attention_mask: bool tensor that broadcasts to (B, H, T, T); must be causal.
        cross_attention_mask: bool tensor that broadcasts to (B, H, T, S).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, D).

    Example:
        >>> layer = DecoderLayer(num_heads=2, key_dim=4, d_ff=16)
        >>> x, memory = np.ones((3, 5, 8), "float32"), np.ones((3, 7, 8), "float32")
        >>> layer(x, memory, causal_mask(5)).shape
        TensorShape([3, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float = 0.0,
        feed_forward_dropout_rate: float = 0.0,
        attention_bias: bool = False,
        norm_first: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = {
            "num_heads": num_heads,
            "key_dim": key_dim,
            "d_ff": d_ff,
            "value_dim": value_dim,
            "dropout_rate": dropout_rate,
            "attention_dropout_rate": attention_dropout_rate,
            "feed_forward_dropout_rate": feed_forward_dropout_rate,
            "attention_bias": attention_bias,
            "norm_first": norm_first,
        }
        policy = self.dtype_policy
        attention = (num_heads, key_dim, value_dim, attention_bias, attention_dropout_rate)
        self.self_attention = MultiHeadAttention(*attention, dtype=policy)
        self.cross_attention = MultiHeadAttention(*attention, dtype=policy)
        self.feed_forward = FeedForward(d_ff, feed_forward_dropout_rate, dtype=policy)
        self.self_residual = Residual(dropout_rate, norm_first, dtype=policy)
        self.cross_residual = Residual(dropout_rate, norm_first, dtype=policy)
        self.feed_forward_residual = Residual(dropout_rate, norm_first, dtype=policy)

    def build(self, x_shape, memory_shape=None):
        self.self_attention.build(x_shape)
        self.cross_attention.build(x_shape, memory_shape)
        self.feed_forward.build(x_shape)
        for residual in (self.self_residual, self.cross_residual, self.feed_forward_residual):
            residual.build(x_shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        x = self.self_residual(
            x,
            sublayer=lambda y: self.self_attention(
                y, attention_mask=attention_mask, training=training
            ),
            training=training,
        )
        x = self.cross_residual(
            x,
            sublayer=lambda y: self.cross_attention(
                y, memory, attention_mask=cross_attention_mask, training=training
            ),
            training=training,
        )
        return self.feed_forward_residual(
            x, sublayer=lambda y: self.feed_forward(y, training=training), training=training
        )

    def step(
        self,
        x: KerasTensor,
        past: KeyValue,
        memory: KeyValue,
        index: KerasTensor,
        cross_attention_mask: KerasTensor | None = None,
    ) -> tuple[KerasTensor, KeyValue]:
        """One position of every hypothesis.

        The W hypotheses of a sentence differ in their past but share the memory, so they are
        rows of a batch to self-attention and *queries of one sequence* to cross-attention:
        the memory is never copied once a hypothesis.

        Args:
            x: float tensor (B, W, D), the embeddings at position `index`.
            past: keys and values (B, W, H, L, K) of earlier positions, L being the room for all.
            memory: keys and values (B, H, S, K), from `cross_attention.project_key_value`.
            index: int scalar, the position, 0 <= index < L.
            cross_attention_mask: bool tensor that broadcasts to (B, H, W, S).

        Returns:
            float tensor (B, W, D), and `past` with this position filled in.
        """
        pasts = []  # handed out of the closure below

        def self_attention(y):  # (B, W, D)
            output, updated = self._attend_to_past(y, past, index)
            pasts.append(updated)
            return output

        x = self.self_residual(x, sublayer=self_attention)
        x = self.cross_residual(
            x,
            sublayer=lambda y: self.cross_attention.attend(
                self.cross_attention.project_query(y), memory, cross_attention_mask
            ),
        )
        return self.feed_forward_residual(x, sublayer=self.feed_forward), pasts[0]

    def _attend_to_past(
        self, x: KerasTensor, past: KeyValue, index: KerasTensor
    ) -> tuple[KerasTensor, KeyValue]:
        batch, beam = ops.shape(x)[0], ops.shape(x)[1]
        rows = ops.reshape(x, (batch * beam, 1, x.shape[-1]))  # (B·W, 1, D)
        new = self.self_attention.project_key_value(rows)
        length = ops.shape(past.key)[3]
        here = ops.arange(length) == index  # (L,)
        past = KeyValue(
            *(
                # `where` and not a slice update: it stays a core op in every server's graph.
                ops.where(here[:, None], ops.reshape(n, (batch, beam, -1, 1, n.shape[-1])), p)
                for n, p in zip(new, past, strict=True)
            )
        )  # (B, W, H, L, K)
        flat = KeyValue(
            *(ops.reshape(p, (batch * beam, p.shape[2], length, p.shape[-1])) for p in past)
        )
        seen = (ops.arange(length) <= index)[None, None, None, :]  # (1, 1, 1, L)
        output = self.self_attention.attend(self.self_attention.project_query(rows), flat, seen)
        return ops.reshape(output, (batch, beam, x.shape[-1])), past

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def get_config(self):
        return super().get_config() | self.options


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(keras.layers.Layer):
    """A stack of `num_layers` decoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        **layer_options: the arguments of `DecoderLayer`.

    Call arguments and returns are those of `DecoderLayer`.
    """

    def __init__(self, num_layers: int, name=None, dtype=None, trainable=True, **layer_options):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_layers = num_layers
        self.layer_options = layer_options
        self.layers = [
            DecoderLayer(**layer_options, dtype=self.dtype_policy, name=f"layer_{i}")
            for i in range(num_layers)
        ]
        self.final_norm = layer_norm(self.dtype_policy) if layer_options.get("norm_first") else None

    def build(self, x_shape, memory_shape=None):
        for layer in self.layers:
            layer.build(x_shape, memory_shape)
        if self.final_norm is not None:
            self.final_norm.build(x_shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        for layer in self.layers:
            x = layer(x, memory, attention_mask, cross_attention_mask, training=training)
        return x if self.final_norm is None else self.final_norm(x)

    def project_memory(self, memory: KerasTensor) -> list[KeyValue]:
        """The memory's keys and values (B, H, S, K) for every layer, once for a whole search."""
        return [layer.cross_attention.project_key_value(memory) for layer in self.layers]

    def step(
        self,
        x: KerasTensor,
        past: list[KeyValue],
        memory: list[KeyValue],
        index: KerasTensor,
        cross_attention_mask: KerasTensor | None = None,
    ) -> tuple[KerasTensor, list[KeyValue]]:
        """`DecoderLayer.step` through all layers; `past` and `memory` have an entry a layer."""
        new_past = []
        for layer, layer_past, layer_memory in zip(self.layers, past, memory, strict=True):
            x, updated = layer.step(x, layer_past, layer_memory, index, cross_attention_mask)
            new_past.append(updated)
        return (x if self.final_norm is None else self.final_norm(x)), new_past

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def get_config(self):
        return super().get_config() | {"num_layers": self.num_layers} | self.layer_options
