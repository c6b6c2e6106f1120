"""The predecessor of the Transformer: a GRU encoder, and a GRU decoder with attention."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.config import ModelConfig
from tf_transformer.decoding.coverage import coverage_penalty, no_coverage
from tf_transformer.decoding.problem import StepOptions, StepResult, StepState
from tf_transformer.decoding.step_logits import step_logits
from tf_transformer.errors import InputError
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.later.recurrent import (
    BahdanauDecoder,
    LuongDecoder,
    RecurrentDecoder,
)
from tf_transformer.models.cached_decoder import PerHypothesis
from tf_transformer.models.padding import require_tokens_first
from tf_transformer.models.predicts_tokens import PredictsTargets, SourceAndTarget
from tf_transformer.text.special_ids import PAD_ID

DECODERS: dict[str, type[RecurrentDecoder]] = {"bahdanau": BahdanauDecoder, "luong": LuongDecoder}


class RecurrentOutput(NamedTuple):
    """The results of a forward pass."""

    states: KerasTensor  # (B, T, D), the decoder's output; `logits` makes logits from it
    memory: KerasTensor  # (B, S, D'), the encoder's output
    cross_attention: list[KerasTensor]  # one (B, 1, T, S); row t: the token predicted at t


@keras.saving.register_keras_serializable(package="tf_transformer")
class RecurrentModel(PredictsTargets):
    """p(target | source) by a bidirectional GRU encoder and a GRU decoder with attention.

    The architecture is Bahdanau et al. (2015) or Luong et al. (2015). The model can replace a
    `Transformer` in tasks, searches and exports. It reads these fields of the configuration:
    `architecture` (bahdanau or luong), the numbers of layers, `d_model`,
    `imported.encoder_d_model`, `tie_embeddings`, and `dropout_rate` for embeddings, outputs and
    between encoder layers.
    `Transformer` describes arguments, calls and errors.

    Raises:
        InputError: also if the source has no positions.
        ValueError: also if the architecture is not recurrent, or if `encoder_d_model` is odd.

    Example:
        >>> model = RecurrentModel(vocabulary_size=11, config=ModelConfig(architecture="luong"))
        >>> source, target = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])
        >>> model((source, target)).shape
        TensorShape([1, 3, 11])
    """

    def __init__(
        self,
        vocabulary_size: int,
        config: ModelConfig | dict,
        source_vocabulary_size: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(vocabulary_size, config, source_vocabulary_size, **kwargs)
        config, policy = self.config, self.dtype_policy
        encoder, decoder = config.encoder, config.decoder
        if config.architecture not in DECODERS or encoder.d_model % 2:
            raise ValueError(
                f"expected the architecture {' or '.join(DECODERS)} and an even encoder_d_model, "
                "because each of two directions gets half of it, got "
                f"{config.architecture!r} and {encoder.d_model}."
            )

        def both_directions(name: str) -> keras.layers.Layer:
            size = encoder.d_model // 2
            gru = keras.layers.GRU(size, return_sequences=True, dtype=policy, name="gru")
            return keras.layers.Bidirectional(gru, dtype=policy, name=name)

        self.encoder_layers = [both_directions(f"encoder_{i}") for i in range(encoder.num_layers)]
        self.decoder = DECODERS[config.architecture](
            decoder.num_layers, decoder.d_model, dtype=policy, name="decoder"
        )
        self.make_embeddings()
        self.dropout = Dropout(config.dropout_rate, dtype=policy)

    def build(self, input_shape: Any = None) -> None:
        super().build()
        encoder, decoder = self.config.encoder.d_model, self.config.decoder.d_model
        for layer in self.encoder_layers:
            layer.build((None, None, encoder))
        self.dropout.build((None, None, encoder))
        self.decoder.build((None, None, decoder), (None, None, encoder))

    def encode(self, source: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Source ids (B, S) to memory (B, S, D'), 0 at padding."""
        require_tokens_first(source, self.source_vocabulary_size)
        if source.shape[1] == 0:
            raise InputError(
                f"expected sources with at least one position, got the shape {tuple(source.shape)}."
            )
        mask = ops.not_equal(source, PAD_ID)
        x = self.source_embedding(source)
        for layer in self.encoder_layers:
            x = layer(self.dropout(x, training=training), mask=mask, training=training)
            x = ops.where(mask[..., None], x, 0.0)
        return x

    def run(self, inputs: SourceAndTarget, training: bool | None = None) -> RecurrentOutput:
        """Like a call without the logits, for rows with padding at the end only."""
        source, target = inputs
        require_tokens_first(target, self.vocabulary_size)
        memory = self.encode(source, training)
        x = self.dropout(self.target_embedding(target), training=training)
        states, weights = self.decoder.run(x, memory, ops.not_equal(source, PAD_ID))
        return RecurrentOutput(self.dropout(states, training=training), memory, [weights[:, None]])

    def max_target_length(self, source_length: int | KerasTensor) -> None:
        """The most tokens of a target: None, because there is no limit."""

    def step_function(self, source: KerasTensor, options: StepOptions) -> "RecurrentStep":
        """Makes the step function of a search for the targets of source ids (B, S)."""
        return RecurrentStep(self, source, options)


class PerSentence(NamedTuple):
    """The state that the hypotheses of a sentence share."""

    memory: KerasTensor  # (B, S, D')
    keys: KerasTensor  # (B, S, D)
    is_source: KerasTensor  # bool (B, 1, S), False at padding


class RecurrentStep:
    """A recurrent decoder as the step function of a search for the targets of ids (B, S).

    `decoding.StepFunction` describes the call. The state has a fixed size and needs no cache.
    """

    cache_schedule = None

    def __init__(self, model: RecurrentModel, source: KerasTensor, options: StepOptions):
        self._model = model
        self._beta = options.coverage_penalty
        self._logits = step_logits(model.output_embedding)
        memory, mask = model.encode(source), ops.not_equal(source, PAD_ID)
        decoder = model.decoder.start(memory, mask, options.beam_size)
        self.start = StepState(
            PerHypothesis(decoder, no_coverage(source, options)),
            PerSentence(memory, model.decoder.attention.keys(memory), mask[:, None]),
        )

    def __call__(self, ids: KerasTensor, state: StepState, index: KerasTensor) -> StepResult:
        (before, coverage), (memory, keys, is_source) = state
        x = self._model.target_embedding(ids)
        after = self._model.decoder.step(x, before, memory, keys, is_source[:, 0])
        if self._beta:
            coverage = coverage + ops.cast(after.weights, "float32")
        state = StepState(PerHypothesis(after, coverage), state.per_sentence)
        return self._logits(after.output), state

    def bonus(self, state: StepState) -> KerasTensor:
        """Returns the coverage penalty (B, W) of hypotheses that end with the step of `state`."""
        is_source = state.per_sentence.is_source
        return coverage_penalty(state.per_hypothesis.coverage, is_source, self._beta)
