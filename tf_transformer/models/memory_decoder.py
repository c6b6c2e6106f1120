"""The step function of a search for targets of sources, with cross-attention to a memory."""

from collections.abc import Iterator
from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.coverage import coverage_penalty, no_coverage
from tf_transformer.decoding.problem import StepOptions, StepState
from tf_transformer.decoding.static_cache import StaticArrays, StaticKeyValue
from tf_transformer.layers.masks import padding_mask
from tf_transformer.layers.stored import KeyValue, Stored
from tf_transformer.models.cached_decoder import CachedDecoder, DecoderParts


class Shared(NamedTuple):
    """What the hypotheses of a source share."""

    memory: list[KeyValue] | list[StaticArrays]  # keys and values of each layer
    mask: KerasTensor  # bool (B, 1, 1, S), True for source tokens


class MemoryDecoder(CachedDecoder):
    """The decoder of a translation model. The hypotheses of a source share its keys and values.

    The source is int (B, S) with padding at the end. The memory is the encoder's output (B, S, D).

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> step = model.step_function(np.array([[5, 6, 7, 2]]), StepOptions(2, max_length=9))
        >>> logits, state = step(np.array([[1, 1]]), step.start, 0)
        >>> logits.shape
        TensorShape([1, 2, 11])
    """

    def __init__(
        self, parts: DecoderParts, options: StepOptions, source: KerasTensor, memory: KerasTensor
    ):
        super().__init__(parts, options, options.max_length)
        batch, layers = ops.shape(source)[0], parts.decoder.layers
        stored = [layer.cross_attention.keys_values(memory) for layer in layers]
        memories = [StaticArrays.of(part) for part in stored] if self._is_static else stored
        kept = self._cache.start([layer.self_attention.nothing(batch) for layer in layers], None)
        shared = Shared(memories, padding_mask(source))
        self.begin_with(self.state_of(kept, shared, no_coverage(source, options)))

    def _memories(self, shared: Shared) -> Iterator[tuple[Stored, KerasTensor]]:
        for memory in shared.memory:
            if isinstance(memory, StaticArrays):
                yield StaticKeyValue(memory, self._groups), shared.mask
            else:
                yield memory, shared.mask

    def bonus(self, state: StepState) -> KerasTensor:
        """Returns the coverage penalty (B, W) of hypotheses that end with the step of `state`."""
        is_source = state.per_sentence.shared.mask[:, 0]  # (B, 1, S)
        beta = self._options.coverage_penalty
        return coverage_penalty(state.per_hypothesis.coverage, is_source, beta)
