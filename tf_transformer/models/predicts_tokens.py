"""From states to logits: the last step of models that predict tokens (paper section 3.4)."""

from keras import KerasTensor

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
