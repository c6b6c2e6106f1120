"""States to logits: the last step of models that predict tokens (paper section 3.4)."""

from dataclasses import asdict
from typing import Any

from keras import KerasTensor

from tf_transformer.config import ModelConfig
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.later.biased_embedding import BiasedEmbedding, ZeroStartEmbedding
from tf_transformer.models.padding import put_back, tokens_first
from tf_transformer.models.reads_ids import ReadsIds

SourceAndTarget = tuple[KerasTensor, KerasTensor]
"""Ids, int (B, S) and (B, T)."""


class PredictsTokens(ReadsIds):
    """The base class of models that predict tokens. All logits are computed here."""

    output_embedding: TokenEmbedding  # its transposed matrix is the output projection

    def __init__(self, vocabulary_size: int, config: ModelConfig | dict | None, **options: Any):
        super().__init__(**options)
        self.config = ModelConfig.of(config)
        self.vocabulary_size = vocabulary_size

    def logits(self, states: KerasTensor) -> KerasTensor:
        """States (..., D) to logits (..., V)."""
        return self.output_embedding.logits(states)

    def factors(self, states: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
        """Rows (..., D) and a matrix (V, D). Their products are the logits of states (..., D).

        A loss takes these factors, because logits need more memory than anything else in training.
        """
        return self.output_embedding.factors(states)

    def get_config(self) -> dict[str, Any]:
        sizes = {"vocabulary_size": self.vocabulary_size, "config": asdict(self.config)}
        return super().get_config() | sizes


class PredictsTargets(PredictsTokens):
    """The base class of models of p(target | source)."""

    has_two_inputs = True

    def __init__(
        self,
        vocabulary_size: int,
        config: ModelConfig | dict | None,
        source_vocabulary_size: int | None,
        **options: Any,
    ):
        super().__init__(vocabulary_size, config, **options)
        self.source_vocabulary_size = source_vocabulary_size or vocabulary_size

    def make_embeddings(self) -> None:
        """Makes the embeddings of target, source and output (paper section 3.4).

        `tie_embeddings` of the configuration says which of them share one layer.
        """
        config, target_size = self.config, self.vocabulary_size
        source_size = self.source_vocabulary_size
        if min(source_size, target_size) <= 0:
            raise ValueError(
                f"vocabulary sizes must be positive, got {target_size} (target) and {source_size} "
                "(source)."
            )
        if config.tie_embeddings == "all" and source_size != target_size:
            raise ValueError(
                f"source and target share one embedding matrix (tie_embeddings='all'), so their "
                f"vocabularies must have the same size, got {source_size} (source) and "
                f"{target_size} (target). Use tie_embeddings='target' or 'none'."
            )
        with_bias = ZeroStartEmbedding if config.imported.zero_start else BiasedEmbedding
        makes_logits = with_bias if config.imported.output_bias else TokenEmbedding
        is_tied = config.tie_embeddings != "none"

        def make(kind: type[TokenEmbedding], name: str, *sizes: int) -> TokenEmbedding:
            return kind(*sizes, dtype=self.dtype_policy, name=f"{name}_embedding")

        of_target = makes_logits if is_tied else TokenEmbedding
        target = source = output = make(of_target, "target", target_size, config.decoder.d_model)
        if config.tie_embeddings != "all":
            source = make(TokenEmbedding, "source", source_size, config.encoder.d_model)
        if not is_tied:
            output = make(makes_logits, "output", target_size, config.decoder.d_model)
        self.target_embedding, self.source_embedding, self.output_embedding = target, source, output

    def build(self, input_shape: Any = None) -> None:
        """Makes all weights. They do not depend on `input_shape`."""
        for embedding in (self.target_embedding, self.source_embedding, self.output_embedding):
            if not embedding.built:
                embedding.build((None, None))

    def call(self, inputs: SourceAndTarget, training: bool | None = None) -> KerasTensor:
        source, _ = tokens_first(inputs[0], self.source_vocabulary_size)
        target, places = tokens_first(inputs[1], self.vocabulary_size)
        states = self.run((source, target), training=training).states
        return self.logits(put_back(states, places))

    def run(self, inputs: SourceAndTarget, training: bool | None = None) -> Any:
        """Like a call, but returns a record with `states` in place of logits."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"source_vocabulary_size": self.source_vocabulary_size}
