"""From states to logits: the last step of models that predict tokens (paper section 3.4)."""

import keras
from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.layers.embedding import TokenEmbedding


class PredictsTokens:
    """The only door to the logits of a model.

    Attributes:
        output_embedding: the embedding whose matrix, transposed, is the output projection.
    """

    output_embedding: TokenEmbedding

    def logits(self, states: KerasTensor) -> KerasTensor:
        """States (..., D) to logits (..., V)."""
        return self.output_embedding.logits(states)

    def factors(self, states: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """The rows (..., D) and the matrix (V, D) whose products are the logits.

        A loss takes them instead of logits, which need the most memory of a training.
        """
        return self.output_embedding.factors(states)


def tied_embeddings(
    config: ModelConfig, target_size: int, source_size: int, dtype: keras.DTypePolicy
) -> tuple[TokenEmbedding, TokenEmbedding, TokenEmbedding]:
    """The embeddings of target, source and output, some of which are one (paper section 3.4).

    Raises:
        ValueError: as `require_sizes`.
    """
    require_sizes(config, target_size, source_size)

    def make(name: str, size: int, d_model: int) -> TokenEmbedding:
        return TokenEmbedding(size, d_model, dtype=dtype, name=f"{name}_embedding")

    target = source = output = make("target", target_size, config.decoder.d_model)
    if config.tie_embeddings != "all":
        source = make("source", source_size, config.encoder.d_model)
    if config.tie_embeddings == "none":
        output = make("output", target_size, config.decoder.d_model)
    return target, source, output


def require_sizes(config: ModelConfig, target_size: int, source_size: int) -> None:
    """Raises a `ValueError` for sizes of vocabularies that a model cannot have."""
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
