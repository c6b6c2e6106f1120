"""The Transformer (paper section 3): source ids and target ids to logits."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.decoding.problem import StepOptions
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.encodings import make_position
from tf_transformer.layers.masks import padding_mask
from tf_transformer.layers.stack import Decoder, Encoder
from tf_transformer.models.cached_decoder import DecoderParts
from tf_transformer.models.memory_decoder import MemoryDecoder
from tf_transformer.models.padding import as_read, require_tokens_first
from tf_transformer.models.predicts_tokens import PredictsTargets, SourceAndTarget


class TransformerOutput(NamedTuple):
    """The results of a forward pass; lists have one entry for each layer."""

    states: KerasTensor  # (B, T, D), the decoder's output; `logits` makes logits from it
    memory: KerasTensor  # (B, S, D'), the encoder's output
    encoder_attention: list  # (B, H, S, S), rows sum to 1, or as the class of attention says
    decoder_attention: list  # (B, H, T, T), or as the class of attention says
    cross_attention: list[KerasTensor]  # (B, H, T, S); row t belongs to the token predicted at t


@keras.saving.register_keras_serializable(package="tf_transformer")
class Transformer(PredictsTargets):
    """p(target | source), as logits of each next target token (paper section 3).

    Ids are integers in [0, V). Id 0 is padding, which nothing attends to. Padding may stand
    anywhere in a row; positions count the tokens only. Targets are shifted right: position t
    predicts the next token.

    Args:
        vocabulary_size: number of token ids, V.
        config: sizes and variants; a `ModelConfig`, or its fields as a dict.
        source_vocabulary_size: number of token ids of the source; None: V. Another number than V
            needs `tie_embeddings` "target" or "none".

    Call arguments:
        inputs: (source, target), int tensors (B, S) and (B, T).
        training: whether dropout is on.

    Returns:
        logits, float tensor (B, T, V). `run` returns `TransformerOutput` with the attention
        weights of all layers and heads. It takes padding only at the end of a row.

    Raises:
        InputError: if a value is not an id.
        ValueError: if a size is below 1, or if source and target share a matrix but not a size.

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
        **kwargs: Any,
    ):
        super().__init__(vocabulary_size, config, source_vocabulary_size, **kwargs)
        config, policy = self.config, {"dtype": self.dtype_policy}
        of_source = make_position(config.encoder, False, name="source_position", **policy)
        of_target = make_position(config.decoder, True, name="target_position", **policy)
        # Checkpoints hold the weights in the order of these attributes.
        self.encoder = Encoder(config.encoder, of_source.on_scores(), name="encoder", **policy)
        self.decoder = Decoder(config.decoder, of_target.on_scores(), name="decoder", **policy)
        self.make_embeddings()
        self.source_position, self.target_position = of_source, of_target
        self.source_dropout = Dropout(config.dropout_rate, **policy)
        self.target_dropout = Dropout(config.dropout_rate, **policy)

    def build(self, input_shape: Any = None) -> None:
        super().build()
        source = (None, None, self.config.encoder.d_model)
        target = (None, None, self.config.decoder.d_model)
        self.source_position.build(source)
        self.target_position.build(target)
        self.source_dropout.build(source)  # no weights, but `summary` shows the shape
        self.target_dropout.build(target)
        self.encoder.build(source)
        self.decoder.build(target, source)

    def run(self, inputs: SourceAndTarget, training: bool | None = None) -> TransformerOutput:
        """Like a call without the logits, for rows with padding at the end only."""
        source, target = as_read(inputs[0], self.config), inputs[1]
        require_tokens_first(target, self.vocabulary_size)
        x = self._source(source, training)
        encoded = self.encoder.call(x, padding_mask(source), training=training)
        x = self.target_position(self.target_embedding(target))
        x = self.target_dropout(x, training=training)
        # Targets have padding at the end only, so the causal mask hides it from real tokens.
        decoded = self.decoder.call(
            x, encoded.output, cross_attention_mask=padding_mask(source), training=training
        )
        attention = encoded.attention, decoded.attention, decoded.cross_attention
        return TransformerOutput(decoded.output, encoded.output, *attention)

    def encode(self, source: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Source ids (B, S) to memory (B, S, D)."""
        source = as_read(source, self.config)
        x = self._source(source, training)
        return self.encoder(x, padding_mask(source), training=training).output

    def _source(self, source: KerasTensor, training: bool | None) -> KerasTensor:
        require_tokens_first(source, self.source_vocabulary_size)
        x = self.source_position(self.source_embedding(source))
        return self.source_dropout(x, training=training)

    def max_target_length(self, source_length: int | KerasTensor) -> int | None:
        """The most tokens of a target: the size of a learned position table, else None."""
        return self.target_position.max_length

    def step_function(self, source: KerasTensor, options: StepOptions) -> MemoryDecoder:
        """Makes the step function of a search for the targets of source ids (B, S)."""
        parts = DecoderParts(
            self.target_embedding, self.target_position, self.decoder, self.output_embedding
        )
        return MemoryDecoder(parts, options, as_read(source, self.config), self.encode(source))
