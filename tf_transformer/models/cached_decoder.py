"""The step function of a search: a decoder that runs one position at a time."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding.cache import Cache, GrowingCache, Kept, StateCache
from tf_transformer.decoding.problem import CacheSchedule, Size, StepOptions, StepResult, StepState
from tf_transformer.decoding.static_cache import StaticCache
from tf_transformer.decoding.step_logits import step_logits
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.masks import combine_masks
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.stack import Decoder
from tf_transformer.layers.stored import Stored


class PerHypothesis(NamedTuple):
    """The state of each hypothesis. Every step reorders it, so it is small."""

    cache: Any  # `Kept.per_hypothesis`; the state of a recurrent decoder, which has no cache
    coverage: KerasTensor | tuple  # float32 (B, W, S): attention to source tokens; () untracked


class PerSentence(NamedTuple):
    """The state that the hypotheses of a sentence share."""

    cache: Any  # `Kept.per_sentence`
    shared: Any  # what the kind of decoder computes once for each sentence


class DecoderParts(NamedTuple):
    """The parts of a model that a decoding step uses."""

    embedding: TokenEmbedding
    position: PositionEncoding
    decoder: Decoder
    output: TokenEmbedding  # makes logits from states


class CachedDecoder:
    """A decoder as a step function. A subclass computes what all steps share, and `start`.

    `decoding.StepFunction` describes the call. There are at most `most` positions. The cache has a
    number of `columns` at the start; None: there is no prompt. On JAX, shapes are always static.
    """

    def __init__(
        self, parts: DecoderParts, options: StepOptions, most: Size, columns: Size | None = None
    ):
        self._parts = parts
        self._options = options
        self._attention = parts.decoder.layers[0].self_attention  # all layers have the same kind
        self._groups = parts.decoder.config.num_key_value_heads
        self._is_static = options.static_shapes or keras.backend.backend() == "jax"
        self._logits = step_logits(parts.output)
        self._encodings = parts.position.encodings(ops.arange(most), parts.decoder.config.d_model)
        self._columns = 0 if columns is None else columns
        beam_size, window = options.beam_size, self._attention.window
        self._cache: Cache = GrowingCache(beam_size, columns, window)
        if not self._attention.stores_rows:
            self._cache = StateCache(beam_size)
        elif self._is_static:
            self._cache = StaticCache(beam_size, self._groups, columns, window)

    def state_of(self, kept: Kept, shared: Any, coverage: KerasTensor | tuple = ()) -> StepState:
        """The state of a step function with these tensors of the cache."""
        return StepState(
            PerHypothesis(kept.per_hypothesis, coverage), PerSentence(kept.per_sentence, shared)
        )

    def begin_with(self, state: StepState) -> None:
        """Sets `start`, the state before the first step, and the capacities of a static cache."""
        first, longest = self._options.capacity, self._options.max_length
        capacities = (longest,) if first is None else (first, longest)
        self.start = self._resize(state, capacities[0])
        self.cache_schedule = None
        if self._is_static:
            self.cache_schedule = CacheSchedule(capacities, self._resize)

    def __call__(self, ids: KerasTensor, state: StepState, index: KerasTensor) -> StepResult:
        decoder, index = self._parts.decoder, ops.convert_to_tensor(index, "int32")
        (per_hypothesis, coverage), (per_sentence, shared) = state
        step = self._cache.begin(Kept(per_hypothesis, per_sentence), index)
        position = self._columns + index
        query_positions = ops.broadcast_to(position, (self._options.beam_size,))  # all are equal
        visible = self._attention.visible(query_positions[:1], step.positions)
        mask = combine_masks(step.mask, visible)
        x, outputs = self._embed_newest(ids, position, index, shared), []
        positions = Positions.of(decoder.position, x, query_positions, step.positions)
        for layer, earlier, (memory, memory_mask) in zip(
            decoder.layers, step.earlier, self._memories(shared), strict=True
        ):
            outputs.append(
                layer.call(
                    x,
                    attention_mask=mask,
                    cross_attention_mask=memory_mask,
                    positions=positions,
                    earlier=earlier,
                    stored_memory=memory,
                )
            )
            x = outputs[-1].output
        output = decoder.finish(x, outputs)
        if self._options.coverage_penalty:
            weights = output.cross_attention[-1]  # (B, H, W, S)
            coverage = coverage + ops.cast(ops.mean(weights, axis=1), "float32")
        kept = self._cache.commit(step, output.stored)
        return self._logits(output.output), self.state_of(kept, shared, coverage)

    def _memories(self, shared: Any) -> Iterable[tuple[Stored | None, KerasTensor | None]]:
        """The memory of each layer, and its mask (B, 1, 1, S); None without cross-attention."""
        return [(None, None)] * len(self._parts.decoder.layers)

    def _embed_newest(
        self, ids: KerasTensor, position: KerasTensor, index: KerasTensor, shared: Any
    ) -> KerasTensor:
        """Embeds the newest tokens (B, W), which stand at `position`: (B, W, D)."""
        return self._embed(ids, position)

    def _embed(self, ids: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Embeds ids (B, T) at positions (B, T or 1), or all at one position: (B, T, D)."""
        x = self._parts.embedding(ids)
        if self._encodings is None:
            return x
        places = self._within_table(positions)
        return x + ops.cast(ops.take(self._encodings, places, axis=0), x.dtype)

    def _within_table(self, positions: KerasTensor) -> KerasTensor:
        """Positions for which there are encodings."""
        return positions

    def _resize(self, state: StepState, steps: Size) -> StepState:
        """Changes the capacity of the state to a number of steps."""
        (per_hypothesis, coverage), (per_sentence, shared) = state
        kept = self._cache.resize(Kept(per_hypothesis, per_sentence), steps)
        return self.state_of(kept, shared, coverage)
