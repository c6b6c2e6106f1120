"""The Transformer (paper section 3): source ids and target ids to logits."""

from dataclasses import asdict
from typing import NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.decoding.hypotheses import StepOptions
from tf_transformer.layers.configured import as_config
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.masks import padding_mask
from tf_transformer.layers.position import make_position
from tf_transformer.layers.stack import Decoder, Encoder, StackOutput
from tf_transformer.models.cached_decoder import CachedDecoder, DecoderParts
from tf_transformer.models.padding import put_back, require_tokens_first, tokens_first
from tf_transformer.models.predicts_tokens import PredictsTokens


class TransformerOutput(NamedTuple):
    """The results of a forward pass; lists have one entry per layer."""

    states: KerasTensor  # (B, T, D), the decoder's output, from which logits are made
    memory: KerasTensor  # (B, S, D'), the encoder's output
    encoder_attention: list  # (B, H, S, S), rows sum to 1; another layout with another pattern
    decoder_attention: list  # (B, H, T, T), or as the pattern says
    cross_attention: list[KerasTensor]  # (B, H, T, S); row t is for the token that t predicts


@keras.saving.register_keras_serializable(package="tf_transformer")
class Transformer(PredictsTokens, keras.Model):
    """p(target | source), as logits of each next target token (paper section 3).

    Ids are integers in [0, V); id 0 is padding, which nothing attends to. It may stand anywhere
    in a row, and positions count tokens without it. Targets are shifted right: position t predicts
    the token that follows it.

    Args:
        vocabulary_size: number of token ids of the target, V, and of the source.
        config: sizes and variants; a `ModelConfig`, or its fields as a dict.
        source_vocabulary_size: number of token ids of the source, if it has its own vocabulary.
            Needs `tie_embeddings` "target" or "none".

    Call arguments:
        inputs: (source, target), int tensors (B, S) and (B, T).
        training: whether dropout is on.

    Returns:
        float tensor (B, T, V) of logits. `run` has the same arguments, with padding at the end
        only, and returns `TransformerOutput`, with the attention weights of all layers and heads.

    Raises:
        InputError: for values that are no ids.
        ValueError: for vocabulary sizes that are not positive, or that differ while source and
            target share one embedding matrix.

    Example:
        >>> model = Transformer(vocabulary_size=11)
        >>> source, target = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])
        >>> model((source, target)).shape
        TensorShape([1, 3, 11])
    """

    def __init__(
        self,
        vocabulary_size: int,
        config: ModelConfig | dict | None = None,
        source_vocabulary_size: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = config = as_config(config)
        self.vocabulary_size = vocabulary_size
        self.source_vocabulary_size = source_vocabulary_size or vocabulary_size
        _check_sizes(self.source_vocabulary_size, vocabulary_size, config)
        policy = self.dtype_policy
        source_position = make_position(
            config.encoder, is_causal=False, dtype=policy, name="source_position"
        )
        target_position = make_position(
            config.decoder, is_causal=True, dtype=policy, name="target_position"
        )
        # Checkpoints hold the weights in the order of these attributes.
        self.encoder = Encoder(
            config.encoder, source_position.on_scores, dtype=policy, name="encoder"
        )
        self.decoder = Decoder(
            config.decoder, target_position.on_scores, dtype=policy, name="decoder"
        )
        sizes = (self.source_vocabulary_size, config.encoder.d_model)
        target_sizes = (vocabulary_size, config.decoder.d_model)
        self.target_embedding = self._embedding("target_embedding", *target_sizes)
        self.source_embedding = (
            self.target_embedding
            if config.tie_embeddings == "all"
            else self._embedding("source_embedding", *sizes)
        )
        self.output_embedding = (
            self._embedding("output_embedding", *target_sizes)
            if config.tie_embeddings == "none"
            else self.target_embedding
        )
        self.source_position = source_position
        self.target_position = target_position
        self.source_dropout = Dropout(config.dropout_rate, dtype=policy)
        self.target_dropout = Dropout(config.dropout_rate, dtype=policy)

    def _embedding(self, name: str, vocabulary_size: int, d_model: int) -> TokenEmbedding:
        return TokenEmbedding(vocabulary_size, d_model, dtype=self.dtype_policy, name=name)

    def build(self, input_shape=None):
        """Makes all weights; they do not depend on the shapes of inputs."""
        ids = (None, None)
        source, target = (
            (None, None, stack.d_model) for stack in (self.config.encoder, self.config.decoder)
        )
        for embedding in (self.target_embedding, self.source_embedding, self.output_embedding):
            if not embedding.built:
                embedding.build(ids)
        self.source_position.build(source)
        self.target_position.build(target)
        self.source_dropout.build(source)  # no weights, but `summary` shows the shape
        self.target_dropout.build(target)
        self.encoder.build(source)
        self.decoder.build(target, source)

    def encode(self, source: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Source ids (B, S) to memory (B, S, D)."""
        x, mask = self._embed_source(source, training)
        return self.encoder(x, attention_mask=mask, training=training)

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
        return self.logits(self._decode(target, memory, memory_mask, training).output)

    def call(
        self, inputs: tuple[KerasTensor, KerasTensor], training: bool | None = None
    ) -> KerasTensor:
        source, target = inputs
        source, _ = tokens_first(source, self.source_vocabulary_size)
        target, places = tokens_first(target, self.vocabulary_size)
        states = self.run((source, target), training=training).states
        return self.logits(put_back(states, places))

    def run(
        self, inputs: tuple[KerasTensor, KerasTensor], training: bool | None = None
    ) -> TransformerOutput:
        """A call without the logits, which `logits` makes of `states`.

        Rows must begin with their tokens.
        """
        source, target = inputs
        x, source_mask = self._embed_source(source, training)
        encoded = self.encoder.run(x, attention_mask=source_mask, training=training)
        decoded = self._decode(target, encoded.output, source_mask, training)
        return TransformerOutput(
            states=decoded.output,
            memory=encoded.output,
            encoder_attention=encoded.attention,
            decoder_attention=decoded.attention,
            cross_attention=decoded.cross_attention,
        )

    def max_target_length(self, source_length: int | KerasTensor) -> int | None:
        """The most tokens of a target: a learned position table has a last row; see `Search`."""
        return self.target_position.max_length

    def step_function(self, source: KerasTensor, options: StepOptions) -> CachedDecoder:
        """The decoder as the step function of a search for targets of `source`."""
        parts = DecoderParts(
            self.target_embedding, self.target_position, self.decoder, self.output_embedding
        )
        return CachedDecoder(parts, options, source, self.encode(source))

    def _embed_source(
        self, source: KerasTensor, training: bool | None
    ) -> tuple[KerasTensor, KerasTensor]:
        """The encoder's input (B, S, D) and its mask (B, 1, 1, S)."""
        require_tokens_first(source, self.source_vocabulary_size)
        x = self.source_position(self.source_embedding(source))
        return self.source_dropout(x, training=training), padding_mask(source)

    def _decode(self, target, memory, memory_mask, training: bool | None) -> StackOutput:
        require_tokens_first(target, self.vocabulary_size)
        x = self.target_position(self.target_embedding(target))
        x = self.target_dropout(x, training=training)
        # Targets have padding at the end only, so the causal mask hides it from real tokens.
        causal = self.decoder.sequence_mask(keras.ops.shape(target)[1])
        return self.decoder.run(x, memory, causal, memory_mask, training=training)

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "source_vocabulary_size": self.source_vocabulary_size,
            "config": asdict(self.config),
        }


def _check_sizes(source_size: int, target_size: int, config: ModelConfig) -> None:
    if min(source_size, target_size) <= 0:
        raise ValueError(
            f"vocabulary sizes must be positive, got {target_size} (target) and {source_size} "
            "(source)."
        )
    if config.tie_embeddings == "all" and source_size != target_size:
        raise ValueError(
            f"source and target share one embedding matrix (tie_embeddings='all'), so their "
            f"vocabularies must have the same size, got {source_size} and {target_size}. Use "
            "tie_embeddings='target' or 'none'."
        )
