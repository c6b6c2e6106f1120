"""A decoder-only language model: ids to the logits of each next id (Radford et al. 2018)."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.decoding.problem import StepOptions
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.encodings import make_position
from tf_transformer.layers.stack import Decoder
from tf_transformer.models.cached_decoder import DecoderParts
from tf_transformer.models.padding import put_back, require_tokens_first, tokens_first
from tf_transformer.models.predicts_tokens import PredictsTokens
from tf_transformer.models.prompt_decoder import PromptDecoder


class LanguageModelOutput(NamedTuple):
    """The results of a forward pass; the list has one entry for each layer."""

    states: KerasTensor  # (B, T, D); `logits` makes logits from it
    attention: list  # (B, H, T, T), rows sum to 1; or as `model.attention` says


@keras.saving.register_keras_serializable(package="tf_transformer")
class LanguageModel(PredictsTokens):
    """p(text) = Π p(token | the tokens before it), as logits of each next token.

    This is the paper's decoder without cross-attention (Liu et al. 2018, Radford et al. 2018). Ids
    are integers in [0, V). Id 0 is padding and may stand anywhere in a row; positions count the
    tokens only. Texts are shifted right: position t predicts the next token.

    Args:
        vocabulary_size: number of token ids, V.
        config: sizes and variants of the decoder; a `ModelConfig`, or its fields as a dict. With
            `tie_embeddings` "all" or "target", embeddings and output share one matrix.

    Call arguments:
        ids: int tensor (B, T).
        training: whether dropout is on.

    Returns:
        logits, float tensor (B, T, V). `run` returns `LanguageModelOutput` with the attention
        weights of all layers and heads. It takes padding only at the end of a row.

    Raises:
        InputError: if a value is not an id.
        ValueError: if the vocabulary size is not positive.

    Example:
        >>> model = LanguageModel(vocabulary_size=11)
        >>> model(np.array([[1, 8, 9]])).shape
        TensorShape([1, 3, 11])
    """

    def __init__(
        self, vocabulary_size: int, config: ModelConfig | dict | None = None, **kwargs: Any
    ):
        if vocabulary_size <= 0:
            raise ValueError(f"vocabulary_size must be positive, got {vocabulary_size}.")
        super().__init__(vocabulary_size, config, **kwargs)
        config, policy = self.config, self.dtype_policy
        self.position = make_position(config.decoder, is_causal=True, dtype=policy, name="position")
        scores = self.position.on_scores()
        self.decoder = Decoder(
            config.decoder, scores, has_cross_attention=False, dtype=policy, name="decoder"
        )
        self.embedding = output = self._embedding("embedding")
        if config.tie_embeddings == "none":
            output = self._embedding("output_embedding")
        self.output_embedding = output
        self.dropout = Dropout(config.dropout_rate, dtype=policy)

    def _embedding(self, name: str) -> TokenEmbedding:
        sizes = (self.vocabulary_size, self.config.d_model)
        return TokenEmbedding(*sizes, dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Any = None) -> None:
        states = (None, None, self.config.d_model)
        for embedding in (self.embedding, self.output_embedding):
            if not embedding.built:
                embedding.build((None, None))
        for part in (self.position, self.dropout, self.decoder):
            part.build(states)

    def call(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        ids, places = tokens_first(ids, self.vocabulary_size)
        return self.logits(put_back(self.run(ids, training).states, places))

    def run(self, ids: KerasTensor, training: bool | None = None) -> LanguageModelOutput:
        """Like a call without the logits, for rows with padding at the end only."""
        require_tokens_first(ids, self.vocabulary_size)
        x = self.dropout(self.position(self.embedding(ids)), training=training)
        # Padding is at the end only, so the causal mask hides it from real tokens.
        decoded = self.decoder.call(x, training=training)
        return LanguageModelOutput(decoded.output, decoded.attention)

    def max_target_length(self, source_length: int | KerasTensor) -> int | KerasTensor | None:
        """The most tokens that can follow a prompt of `source_length` tokens; None: no limit.

        A learned position table limits the tokens that are read. The last one predicted is not.
        """
        most = self.position.max_length
        return None if most is None else most - source_length + 1

    def step_function(self, source: KerasTensor, options: StepOptions) -> PromptDecoder:
        """Makes the step function of a search for continuations of prompts (B, S)."""
        parts = DecoderParts(self.embedding, self.position, self.decoder, self.output_embedding)
        return PromptDecoder(parts, options, source)
