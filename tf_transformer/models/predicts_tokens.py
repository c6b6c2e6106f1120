"""States to logits: the last step of models that predict tokens (paper section 3.4)."""

import keras
from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.later.biased_embedding import BiasedEmbedding
from tf_transformer.layers.later.zero_start_embedding import ZeroStartEmbedding


class PredictsTokens:
    """A base class that computes the logits of a model. All logits are computed here.

    Attributes:
        output_embedding: the embedding; its transposed matrix is the output projection.
    """

    output_embedding: TokenEmbedding

    def logits(self, states: KerasTensor) -> KerasTensor:
        """States (..., D) to logits (..., V)."""
        return self.output_embedding.logits(states)

    def factors(self, states: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Rows (..., D) and a matrix (V, D). Their products are the logits of states (..., D).

        A loss takes these factors, because logits need more memory than anything else in training.
        """
        return self.output_embedding.factors(states)


def tied_embeddings(
    config: ModelConfig, target_size: int, source_size: int, dtype: keras.DTypePolicy
) -> tuple[TokenEmbedding, TokenEmbedding, TokenEmbedding]:
    """Makes the embeddings of target, source and output (paper section 3.4).

    `config.tie_embeddings` says which of them share one layer.

    Args:
        config: the configuration of the model.
        target_size: number of token ids of the target.
        source_size: number of token ids of the source.
        dtype: the dtype policy of the layers.

    Returns:
        the embeddings of target, source and output, in this order.

    Raises:
        ValueError: see `require_sizes`.
    """
    require_sizes(config, target_size, source_size)

    def make(name: str, size: int, d_model: int, makes_logits: bool) -> TokenEmbedding:
        return embedding_layer(config, makes_logits)(
            size, d_model, dtype=dtype, name=f"{name}_embedding"
        )

    is_tied = config.tie_embeddings != "none"
    target = source = output = make("target", target_size, config.decoder.d_model, is_tied)
    if config.tie_embeddings != "all":
        source = make("source", source_size, config.encoder.d_model, False)
    if not is_tied:
        output = make("output", target_size, config.decoder.d_model, True)
    return target, source, output


def embedding_layer(config: ModelConfig, makes_logits: bool) -> type[TokenEmbedding]:
    """The class of an embedding. `makes_logits`: whether it is the output projection, too."""
    if not (makes_logits and config.output_bias):
        return TokenEmbedding
    return ZeroStartEmbedding if config.zero_start else BiasedEmbedding


def require_sizes(config: ModelConfig, target_size: int, source_size: int) -> None:
    """Checks the sizes of the vocabularies of a model.

    Raises:
        ValueError: if a size is not positive, or if source and target share a matrix but not a
            size.
    """
    if min(source_size, target_size) <= 0:
        raise ValueError(
            f"vocabulary sizes must be positive, got {target_size} (target) and {source_size} "
            "(source)."
        )
    if config.tie_embeddings == "all" and source_size != target_size:
        raise ValueError(
            f"source and target share one embedding matrix (tie_embeddings='all'), so their "
            f"vocabularies must have the same size, got {source_size} (source) and {target_size} "
            "(target). Use tie_embeddings='target' or 'none'."
        )
