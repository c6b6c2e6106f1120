"""The Transformer (paper section 3): source ids and target ids to logits."""

import keras
from keras import KerasTensor, ops

from tf_transformer.config import ModelConfig
from tf_transformer.layers import (
    Decoder,
    Dropout,
    Encoder,
    LearnedPosition,
    SinusoidalPosition,
    TokenEmbedding,
    causal_mask,
    padding_mask,
)


@keras.saving.register_keras_serializable(package="tf_transformer")
class Transformer(keras.Model):
    """p(target | source), as logits of each next target token (paper section 3).

    Ids are integers in [0, V); id 0 is padding, which nothing attends to. Targets go in
    shifted right: position t predicts the token that follows it.

    Args:
        vocabulary_size: number of token ids, V.
        config: sizes and variants; a `ModelConfig`, or its fields as a dict.

    Call arguments:
        inputs: (source, target), int tensors (B, S) and (B, T).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, V) of logits.

    Example:
        >>> model = Transformer(vocabulary_size=11)
        >>> source, target = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])
        >>> model((source, target)).shape
        TensorShape([1, 3, 11])
    """

    def __init__(self, vocabulary_size: int, config: ModelConfig | dict | None = None, **kwargs):
        super().__init__(**kwargs)
        if vocabulary_size <= 0:
            raise ValueError(f"vocabulary_size must be positive, got {vocabulary_size}.")
        if isinstance(config, dict):
            config = ModelConfig(**config)
        self.config = config = config or ModelConfig()
        self.vocabulary_size = vocabulary_size
        key_dim, value_dim = config.head_dims
        options = {
            "num_layers": config.num_layers,
            "remat": config.remat,
            "num_heads": config.num_heads,
            "key_dim": key_dim,
            "value_dim": value_dim,
            "d_ff": config.d_ff,
            "dropout_rate": config.dropout_rate,
            "attention_dropout_rate": config.attention_dropout_rate,
            "feed_forward_dropout_rate": config.feed_forward_dropout_rate,
            "attention_bias": config.attention_bias,
            "norm_first": config.norm_first,
            "dtype": self.dtype_policy,
        }
        self.encoder = Encoder(**options, name="encoder")
        self.decoder = Decoder(**options, name="decoder")
        self.target_embedding = self._embedding("target_embedding")
        self.source_embedding = (
            self.target_embedding
            if config.tie_embeddings == "all"
            else self._embedding("source_embedding")
        )
        self.output_embedding = (
            self._embedding("output_embedding")
            if config.tie_embeddings == "none"
            else self.target_embedding
        )
        self.source_position = self._position("source_position")
        self.target_position = self._position("target_position")
        self.source_dropout = Dropout(config.dropout_rate, dtype=self.dtype_policy)
        self.target_dropout = Dropout(config.dropout_rate, dtype=self.dtype_policy)

    def _embedding(self, name: str) -> TokenEmbedding:
        return TokenEmbedding(
            self.vocabulary_size, self.config.d_model, dtype=self.dtype_policy, name=name
        )

    def _position(self, name: str) -> keras.layers.Layer:
        if self.config.position == "learned":
            return LearnedPosition(self.config.max_length, dtype=self.dtype_policy, name=name)
        return SinusoidalPosition(dtype=self.dtype_policy, name=name)

    def build(self, input_shape=None):
        """Makes all weights; shapes of inputs do not matter to them."""
        ids, states = (None, None), (None, None, self.config.d_model)
        for embedding in (self.target_embedding, self.source_embedding, self.output_embedding):
            if not embedding.built:
                embedding.build(ids)
        for position in (self.source_position, self.target_position):
            position.build(states)
        for dropout in (self.source_dropout, self.target_dropout):
            dropout.build(states)  # no weights, but `summary` tells the shape
        self.encoder.build(states)
        self.decoder.build(states, states)

    def encode(self, source: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Source ids (B, S) to memory (B, S, D)."""
        x = self.source_position(self.source_embedding(source))
        x = self.source_dropout(x, training=training)
        return self.encoder(x, attention_mask=padding_mask(source), training=training)

    def decode(
        self,
        target: KerasTensor,
        memory: KerasTensor,
        memory_mask: KerasTensor | None = None,
        training: bool | None = None,
    ) -> KerasTensor:
        """Next-token logits at every position of whole targets.

        Args:
            target: int tensor (B, T), shifted right.
            memory: float tensor (B, S, D), from `encode`.
            memory_mask: bool tensor (B, 1, 1, S), `padding_mask` of the source.
            training: whether dropout is on.

        Returns:
            float tensor (B, T, V).
        """
        return self.output_embedding.logits(self._decoded(target, memory, memory_mask, training))

    def _decoded(self, target, memory, memory_mask, training: bool | None) -> KerasTensor:
        x = self.target_position(self.target_embedding(target))
        x = self.target_dropout(x, training=training)
        # Targets are padded at the end only, so the causal mask hides padding from real tokens.
        causal = causal_mask(ops.shape(target)[1])
        return self.decoder(x, memory, causal, memory_mask, training=training)

    def states(
        self, inputs: tuple[KerasTensor, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        """The decoder's last states (B, T, D), which `output_embedding` makes logits of.

        For what needs no logits, or more than them, like `training.loss`. Arguments are those of a
        call.
        """
        source, target = inputs
        memory = self.encode(source, training=training)
        return self._decoded(target, memory, padding_mask(source), training)

    def call(
        self, inputs: tuple[KerasTensor, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        return self.output_embedding.logits(self.states(inputs, training=training))

    def cross_attention_weights(
        self, source: KerasTensor, target: KerasTensor
    ) -> list[KerasTensor]:
        """Where each target position looks in the source.

        Args:
            source: int tensor (B, S).
            target: int tensor (B, T), shifted right as in `call`: row t of the weights belongs to
                the token that position t predicts.

        Returns:
            float tensor (B, H, T, S) a decoder layer; rows sum to 1.
        """
        return self.decoder.cross_attention_weights(
            self.target_position(self.target_embedding(target)),
            self.encode(source),
            causal_mask(ops.shape(target)[1]),
            padding_mask(source),
        )

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "config": {name: getattr(self.config, name) for name in ModelConfig.__match_args__},
        }
