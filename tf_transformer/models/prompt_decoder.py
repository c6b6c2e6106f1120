"""A language model as the step function of a search that continues prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding.hypotheses import CacheSchedule, StepState
from tf_transformer.layers.cache import GrowingCache, KeyValue, StaticCache
from tf_transformer.layers.flatten import flatten_positions, unflatten_positions
from tf_transformer.layers.linear_cache import LinearCache
from tf_transformer.layers.masks import combine_masks, padding_mask
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import PAD_ID

if TYPE_CHECKING:
    from tf_transformer.models.language_model import LanguageModel


class PerPrompt(NamedTuple):
    """State that the hypotheses of a prompt share."""

    # First the prompt's columns, then the decoded tokens.
    cache: GrowingCache | StaticCache | LinearCache
    padding: KerasTensor  # int32 (B,): columns of padding before the prompt
    last: KerasTensor  # int32 (B,): the prompt's last token


class PromptDecoder:
    """A `LanguageModel` as the step function of a search over a batch of prompts.

    The prompts of a batch end in the same column, with padding before the shorter ones, so that
    all continuations start in the same column. One forward pass over all columns but the last
    fills the cache; the first step of the search reads the last token of each prompt.

    Absolute position encodings are those of the tokens in their own text. Encodings that act on
    scores get columns for positions: they may depend on differences of positions only.

    Args:
        model: the language model, built.
        source: int tensor (B, S), each prompt ending with the end id, then padding.
        beam_size: hypotheses per prompt, W.
        max_length: the largest number of steps, L.
        static_shapes: as of `IncrementalDecoder`.
        capacity: steps that a static cache has room for before `cache_schedule` resizes it; L when
            None.
        output_projection: `TokenEmbedding.projection` of the output embedding, (D, V), if the
            caller has it.

    Call arguments:
        ids: int32 tensor (B, W), the tokens that the step before has added; at the first step,
            those of the prompts take their place.
        state: `start`, or the state that the step before returned.
        index: int32 scalar, the number of tokens added so far.

    Returns:
        logits (B, W, V) of the next tokens, and the new state.
    """

    def __init__(
        self,
        model: LanguageModel,
        source: KerasTensor,
        beam_size: int,
        max_length: int | KerasTensor,
        static_shapes: bool | None = None,
        capacity: int | KerasTensor | None = None,
        output_projection: KerasTensor | None = None,
    ):
        self._model = model
        self._beam_size = beam_size
        if static_shapes is None:
            static_shapes = keras.backend.backend() == "jax"
        if output_projection is None:
            output_projection = model.output_embedding.projection()
        self._output_projection = output_projection
        self._pattern = model.decoder.pattern
        # A column of padding first: of an empty tensor, reshaping cannot infer a size.
        prompt = ops.pad(align_right(source), ((0, 0), (1, 0)), constant_values=PAD_ID)  # (B, P)
        columns = ops.shape(prompt)[1] - 1
        self._most = columns + max_length  # positions; a learned table may end before
        if model.position.max_length is not None:
            self._most = ops.minimum(self._most, model.position.max_length)
        self._encodings = model.position.encodings(ops.arange(self._most), model.config.d_model)
        # Columns in the cache before the first step; number 0 is the first that a cache keeps.
        self._filled = columns
        if self._pattern.window is not None:
            self._filled = self._pattern.capacity(columns + 1) - 1
        capacity = max_length if capacity is None else capacity
        self.start = self._start(prompt, static_shapes, capacity)
        self.cache_schedule = (
            CacheSchedule((capacity, max_length), self._resize) if static_shapes else None
        )

    def _start(self, prompt: KerasTensor, static_shapes: bool, capacity) -> StepState:
        before, last = prompt[:, :-1], prompt[:, -1]
        batch, columns = ops.shape(before)
        dropped = columns - self._filled
        padding = ops.shape(prompt)[1] - token_counts(prompt) - dropped
        numbers = ops.arange(columns, dtype="int32") - dropped
        causal = self._pattern.causal_mask(columns)
        found = self._model.decoder.run(
            self._embed(before, numbers[None] - padding[:, None]),
            attention_mask=combine_masks(causal, padding_mask(before)),
            query_positions=numbers,
        )
        layers = found.caches
        if self._pattern.window is not None:
            layers = [KeyValue(*(field[:, :, dropped:] for field in layer)) for layer in layers]
        cache = self._pattern.layout(static_shapes).of_prompt(layers, batch)
        is_text = ops.not_equal(before, PAD_ID)[:, None, dropped:]  # (B, 1, P - 1)
        ancestors, cache = cache.share(batch, self._beam_size, is_text)
        state = StepState((ancestors,), PerPrompt(cache, padding, last))
        return self._resize(state, capacity) if static_shapes else state

    def __call__(
        self, ids: KerasTensor, state: StepState, index: KerasTensor
    ) -> tuple[KerasTensor, StepState]:
        index = ops.convert_to_tensor(index, "int32")
        (ancestors,), (cache, padding, last) = state
        ids = ops.where(ops.equal(index, 0), last[:, None], ids)
        column = self._filled + index
        if self._pattern.window is not None:
            ancestors, cache = cache.forget(ancestors, column - self._pattern.window + 1)
        ancestors, cache = cache.open(ancestors, index, self._filled)
        query_positions = ops.broadcast_to(column, (self._beam_size,))
        key_positions = cache.positions(self._beam_size, self._filled, index)
        pattern_mask = self._pattern.mask(query_positions[:1], key_positions)
        found = self._model.decoder.run(
            self._embed(ids, (column - padding)[:, None]),
            attention_mask=combine_masks(cache.mask(ancestors, has_padding=True), pattern_mask),
            caches=cache.layers,
            query_positions=query_positions,
            key_positions=key_positions,
        )
        rows = ops.matmul(flatten_positions(found.output), self._output_projection)
        ancestors, cache = cache.close(ancestors, found.caches)
        return unflatten_positions(rows, like=found.output), StepState(
            (ancestors,), PerPrompt(cache, padding, last)
        )

    def _embed(self, ids: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Ids (B, T) at positions (B, T or 1) to (B, T, D)."""
        x = self._model.embedding(ids)
        if self._encodings is None:
            return x
        # Padding is before position 0; a row that has reached its limit may go beyond the last.
        positions = ops.clip(positions, 0, self._most - 1)
        return x + ops.cast(ops.take(self._encodings, positions, axis=0), x.dtype)

    def _resize(self, state: StepState, capacity) -> StepState:
        """The state with a static cache that has room for `capacity` steps."""
        (ancestors,), (cache, *others) = state
        rows = self._filled + self._pattern.capacity(capacity) * self._beam_size
        ancestors, cache = cache.resize(ancestors, rows)
        return StepState((ancestors,), PerPrompt(cache, *others))


def align_right(source: KerasTensor) -> KerasTensor:
    """Prompts (B, S) that end with the end id, then padding, as a decoder reads them.

    The end id is left out, the start id comes first, and padding before it.

    Example:
        >>> np.asarray(align_right(np.array([[7, 8, 2], [9, 2, 0], [2, 0, 0]]))).tolist()
        [[1, 7, 8], [0, 1, 9], [0, 0, 1]]
    """
    columns = ops.shape(source)[1]
    padding = columns - token_counts(source)  # (B,)
    places = ops.arange(columns, dtype="int32")[None] - padding[:, None]  # (B, S)
    ids = ops.take_along_axis(shift_right(source), ops.maximum(places, 0), axis=1)
    return ops.where(places >= 0, ids, PAD_ID)
