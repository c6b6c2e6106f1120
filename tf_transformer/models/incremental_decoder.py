"""The decoder one position at a time: the step function of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding.hypotheses import CacheSchedule, StepState
from tf_transformer.layers.cache import (
    AbsorbedKeyValue,
    GrowingCache,
    KeyValue,
    LayerSize,
    StaticCache,
    StaticKeyValue,
)
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.layers.linear_cache import LinearCache
from tf_transformer.layers.masks import combine_masks, padding_mask

if TYPE_CHECKING:
    from tf_transformer.models.transformer import Transformer


class PerHypothesis(NamedTuple):
    """State of each hypothesis. It is small, because every step reorders it."""

    # bool (B, W, R): the rows of the cache that are its ancestors. Linear attention: sums over them
    ancestors: Any
    coverage: KerasTensor | tuple  # float32 (B, W, S): attention to source tokens; () untracked


class PerSentence(NamedTuple):
    """State that the hypotheses of a sentence share."""

    cache: GrowingCache | StaticCache | LinearCache  # of the decoded tokens
    memory: list[KeyValue] | list[StaticKeyValue] | list[AbsorbedKeyValue]  # one per layer
    memory_mask: KerasTensor  # bool (B, 1, 1, S), True for source tokens that are not padding


class IncrementalDecoder:
    """A Transformer's decoder as the step function of a search over a batch of sources.

    Computed once, here: the keys and values of the memory for every layer (one per sentence, not
    one per hypothesis), the encodings of positions, the output projection.

    Args:
        model: the Transformer, built.
        source: int tensor (B, S) of ids.
        beam_size: hypotheses per sentence, W.
        max_length: the largest number of steps, L.
        static_shapes: whether all tensors keep their shapes from step to step, as XLA and JAX need
            it; else the cache grows by one position per step. None: True on JAX.
        track_coverage: whether the state holds the attention that each source token received.
        absorb_memory: whether the memory absorbs weights of cross-attention (`AbsorbedKeyValue`).
            For a single sentence with at most `key_dim` tokens. Layers with biases ignore it.
        capacity: positions that a static cache has room for before `cache_schedule` resizes it; L
            when None.
        output_projection: `TokenEmbedding.projection` of the output embedding, (D, V), if the
            caller has it.

    Call arguments:
        ids: int32 tensor (B, W), the tokens at position `index`.
        state: `start`, or the state that the step before returned.
        index: int32 scalar, the position.

    Returns:
        logits (B, W, V) of the next tokens, and the new state.

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> step = IncrementalDecoder(model, np.array([[5, 6, 7, 2]]), beam_size=2, max_length=9)
        >>> logits, state = step(np.array([[1, 1]]), step.start, 0)
        >>> logits.shape
        TensorShape([1, 2, 11])
    """

    def __init__(
        self,
        model: Transformer,
        source: KerasTensor,
        beam_size: int,
        max_length: int | KerasTensor,
        static_shapes: bool | None = None,
        track_coverage: bool = False,
        absorb_memory: bool = False,
        capacity: int | KerasTensor | None = None,
        output_projection: KerasTensor | None = None,
    ):
        self._model = model
        self._beam_size = beam_size
        self._track_coverage = track_coverage
        self._pattern = model.decoder.pattern
        if static_shapes is None:
            static_shapes = keras.backend.backend() == "jax"
        self._encodings = model.target_position.encodings(
            ops.arange(max_length), model.config.d_model
        )
        # For one row, transposing the matrix takes longer than multiplying with it transposed,
        # unless the translation is long.
        if output_projection is None and not (absorb_memory and beam_size == 1):
            output_projection = model.output_embedding.projection()
        self._output_projection = output_projection
        capacity = max_length if capacity is None else capacity
        self.start = self._start(source, static_shapes, absorb_memory, capacity)
        self.cache_schedule = (
            CacheSchedule((capacity, max_length), self._resize) if static_shapes else None
        )

    def _start(self, source, static_shapes: bool, absorb_memory: bool, capacity) -> StepState:
        model, sizes = self._model, self._model.config.decoder
        attentions = [layer.cross_attention for layer in model.decoder.layers]
        states = model.encode(source)
        memory: list = [attention.project_key_value(states) for attention in attentions]
        if absorb_memory and not model.config.attention_bias:
            memory = list(map(AbsorbedKeyValue.of, memory, attentions))
        elif static_shapes:
            memory = list(map(StaticKeyValue.of, memory))
        layout = self._pattern.layout(static_shapes)
        layer = LayerSize(
            sizes.num_key_value_heads, sizes.key_dim, sizes.value_dim, model.compute_dtype
        )
        rows = self._pattern.capacity(capacity) * self._beam_size
        cache = layout.empty(source, sizes.num_layers, layer, rows)
        batch, source_length = ops.shape(source)
        ancestors, cache = cache.share(batch, self._beam_size)
        coverage: KerasTensor | tuple = ()
        if self._track_coverage:
            coverage = ops.zeros((batch, self._beam_size, source_length), "float32")
        return StepState(
            PerHypothesis(ancestors, coverage), PerSentence(cache, memory, padding_mask(source))
        )

    def __call__(
        self, ids: KerasTensor, state: StepState, index: KerasTensor
    ) -> tuple[KerasTensor, StepState]:
        index = ops.convert_to_tensor(index, "int32")
        (ancestors, coverage), (cache, memory, memory_mask) = state
        if self._pattern.window is not None:
            ancestors, cache = cache.forget(ancestors, index - self._pattern.window + 1)
        ancestors, cache = cache.open(ancestors, index)
        query_positions = ops.broadcast_to(index, (self._beam_size,))  # all the same
        key_positions = cache.positions(self._beam_size, 0, index)
        pattern_mask = self._pattern.mask(query_positions[:1], key_positions)
        found = self._model.decoder.run(
            self._embed(ids, index),
            memory,
            combine_masks(cache.mask(ancestors), pattern_mask),
            memory_mask,
            caches=cache.layers,
            query_positions=query_positions,
            key_positions=key_positions,
        )
        if self._track_coverage:
            weights = found.cross_attention[-1]  # (B, H, W, S)
            coverage = coverage + ops.cast(ops.mean(weights, axis=1), "float32")
        ancestors, cache = cache.close(ancestors, found.caches)
        return self._logits(found.output), StepState(
            PerHypothesis(ancestors, coverage), PerSentence(cache, memory, memory_mask)
        )

    def _embed(self, ids: KerasTensor, index: KerasTensor) -> KerasTensor:
        """(B, W) to (B, W, D)."""
        x = self._model.target_embedding(ids)
        if self._encodings is None:
            return x
        return x + ops.cast(ops.take(self._encodings, index, axis=0), x.dtype)

    def _resize(self, state: StepState, capacity) -> StepState:
        """The state with a static cache that has room for `capacity` positions."""
        (ancestors, coverage), (cache, memory, memory_mask) = state
        rows = self._pattern.capacity(capacity) * self._beam_size
        ancestors, cache = cache.resize(ancestors, rows)
        return StepState(
            PerHypothesis(ancestors, coverage), PerSentence(cache, memory, memory_mask)
        )

    def _logits(self, x: KerasTensor) -> KerasTensor:
        """(B, W, D) to (B, W, V)."""
        if self._output_projection is None:
            return self._model.output_embedding.logits(x)
        return unflatten_positions(
            ops.matmul(flatten_positions(x), self._output_projection), like=x
        )


def coverage_penalty(state: StepState, beta: float) -> KerasTensor:
    """β Σ ln(min(attention that a source token received, 1)) (Wu et al. 2016, equation 14).

    Args:
        state: of an `IncrementalDecoder`, after the step.
        beta: β.

    Returns:
        float32 tensor (B, W), at most 0, to be added to the scores of hypotheses that end.
    """
    covered = ops.clip(state.per_hypothesis.coverage, 1e-9, 1.0)
    is_text = state.per_sentence.memory_mask[:, 0]  # (B, 1, S)
    return beta * ops.sum(ops.where(is_text, ops.log(covered), 0.0), axis=-1)
