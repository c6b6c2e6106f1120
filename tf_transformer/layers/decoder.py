"""The decoder layer and the decoder stack (paper section 3.1), whole and one step at a time."""

from collections.abc import Callable
from typing import NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.layers.attention import (
    Folded,
    KeyValue,
    MultiHeadAttention,
    attention_weights,
)
from tf_transformer.layers.feed_forward import FeedForward
from tf_transformer.layers.residual import Residual
from tf_transformer.layers.stack import Stack


class Step(NamedTuple):
    """What a decoder layer gives for one position of W hypotheses a sentence."""

    output: KerasTensor  # (B, W, D)
    memory_query: KerasTensor | None  # (B, H, W, K), what a memory that is not folded was asked
    past: KeyValue  # (B, H, R, K), this position's rows included


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
        self.cross_attention.build(x_shape, memory_shape or x_shape)
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
        key_value = self.cross_attention.project_key_value(memory)
        return self._whole(x, key_value, attention_mask, cross_attention_mask, training)[0]

    def look(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
    ) -> tuple[KerasTensor, KerasTensor]:
        """`call` that also tells where it looks: its output, and the weights (B, H, T, S)."""
        key_value = self.cross_attention.project_key_value(memory)
        x, query = self._whole(x, key_value, attention_mask, cross_attention_mask)
        return x, attention_weights(query, key_value.key, cross_attention_mask)

    def _whole(
        self, x, memory: KeyValue, attention_mask, cross_attention_mask, training=None
    ) -> tuple[KerasTensor, KerasTensor]:
        """The output (B, T, D), and the queries (B, H, T, K) the memory was asked."""
        queries = []  # handed out of the closure below

        def cross_attention(y):  # (B, T, D)
            queries.append(self.cross_attention.project_query(y))
            return self.cross_attention.attend(
                queries[0], memory, cross_attention_mask, training=training
            )

        x = self._sublayers(
            x,
            lambda y: self.self_attention(y, attention_mask=attention_mask, training=training),
            cross_attention,
            training,
        )
        return x, queries[0]

    def step(
        self,
        x: KerasTensor,
        past: KeyValue,
        append: Callable[[KeyValue, KeyValue], KeyValue],
        memory: KeyValue | Folded,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        compiled: bool = False,
    ) -> Step:
        """One position of every hypothesis.

        The W hypotheses of a sentence are *queries of one sequence*, to the memory and to their
        common past: neither is ever copied once a hypothesis. The past holds positions of all of
        them, and the mask lets each see its own.

        Args:
            x: float tensor (B, W, D), the embeddings at this position.
            past: keys and values (B, H, R, K) of earlier positions of all hypotheses.
            append: (past, keys and values of this position (B, H, W, K)) to the longer past.
            memory: keys and values (B, H, S, K), from `cross_attention.project_key_value`, or
                what `cross_attention.fold` made of those of one sentence.
            attention_mask: bool tensor (B, 1, W, R): which rows of the longer past each
                hypothesis sees.
            cross_attention_mask: bool tensor that broadcasts to (B, 1, W, S).
            compiled: whether a compiler will see the step. Past and memory are then as `lay_out`
                gives them; without one, small attention is computed in a way that starts faster.
        """
        attend_to_past, attend_to_memory = (
            attention.attend_laid_out if compiled else attention.attend_in_step
            for attention in (self.self_attention, self.cross_attention)
        )
        pasts, queries = [], [None]  # handed out of the closures below

        def self_attention(y):  # (B, W, D)
            query, new = self.self_attention.project(y)
            pasts.append(append(past, new))
            return attend_to_past(query, pasts[0], attention_mask)

        def cross_attention(y):  # (B, W, D)
            if isinstance(memory, Folded):
                return self.cross_attention.attend_folded(y, memory, cross_attention_mask)
            queries.append(self.cross_attention.project_query(y))
            return attend_to_memory(queries[-1], memory, cross_attention_mask)

        x = self._sublayers(x, self_attention, cross_attention)
        return Step(x, queries[-1], pasts[0])

    def _sublayers(
        self,
        x: KerasTensor,
        self_attention: Callable[[KerasTensor], KerasTensor],
        cross_attention: Callable[[KerasTensor], KerasTensor],
        training: bool | None = None,
    ) -> KerasTensor:
        x = self.self_residual(x, sublayer=self_attention, training=training)
        x = self.cross_residual(x, sublayer=cross_attention, training=training)
        return self.feed_forward_residual(
            x, sublayer=lambda y: self.feed_forward(y, training=training), training=training
        )

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def get_config(self):
        return super().get_config() | self.options


@keras.saving.register_keras_serializable(package="tf_transformer")
class Decoder(Stack):
    """A stack of `num_layers` decoder layers, with a final norm under pre-norm.

    Args:
        num_layers: number of layers (paper: N).
        remat: whether a layer's inside is computed again for the backward pass, to save memory.
        **layer_options: the arguments of `DecoderLayer`.

    Call arguments and returns are those of `DecoderLayer`.
    """

    layer_class = DecoderLayer

    def build(self, x_shape, memory_shape=None):
        self.build_all(x_shape, memory_shape)

    def call(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        return self.through(x, memory, attention_mask, cross_attention_mask, training=training)

    def cross_attention_weights(
        self,
        x: KerasTensor,
        memory: KerasTensor,
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
    ) -> list[KerasTensor]:
        """Where each position looks in the memory: (B, H, T, S) a layer."""
        weights = []
        for layer in self.layers:
            x, looked_at = layer.look(x, memory, attention_mask, cross_attention_mask)
            weights.append(looked_at)
        return weights

    def project_memory(self, memory: KerasTensor) -> list[KeyValue]:
        """The memory's keys and values (B, H, S, K) for every layer, once for a whole search."""
        return [layer.cross_attention.project_key_value(memory) for layer in self.layers]

    def fold_memory(self, memory: list[KeyValue]) -> list[Folded]:
        """What `project_memory` gave for one sentence, with W^Q and W^O multiplied in."""
        pairs = zip(self.layers, memory, strict=True)
        return [layer.cross_attention.fold(key_value) for layer, key_value in pairs]

    def step(
        self,
        x: KerasTensor,
        past: list[KeyValue],
        append: Callable[[KeyValue, KeyValue], KeyValue],
        memory: list[KeyValue] | list[Folded],
        attention_mask: KerasTensor | None = None,
        cross_attention_mask: KerasTensor | None = None,
        compiled: bool = False,
    ) -> tuple[Step, list[KeyValue]]:
        """`DecoderLayer.step` through all layers; `past` and `memory` have an entry a layer.

        Returns:
            the last layer's step, with the final norm's output, and the longer pasts of all.
        """
        pasts = []
        for layer, layer_past, layer_memory in zip(self.layers, past, memory, strict=True):
            step = layer.step(
                x, layer_past, append, layer_memory, attention_mask, cross_attention_mask, compiled
            )
            x = step.output
            pasts.append(step.past)
        return step._replace(output=self.normalized(x)), pasts

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape
