"""The step function of a search: a decoder that runs one position at a time."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding.cache import Cache, GrowingCache, Kept, SumsCache
from tf_transformer.decoding.coverage import coverage_penalty, no_coverage, require_no_penalty
from tf_transformer.decoding.hypotheses import CacheSchedule, StepOptions, StepState
from tf_transformer.decoding.static_cache import (
    StaticArrays,
    StaticCache,
    StaticKeyValue,
    limited,
)
from tf_transformer.decoding.step_logits import step_logits
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.later.linear_attention import LinearAttention
from tf_transformer.layers.masks import combine_masks, padding_mask
from tf_transformer.layers.position_encoding import PositionEncoding, Positions
from tf_transformer.layers.stack import Decoder
from tf_transformer.layers.stored import KeyValue, Stored
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import PAD_ID


class PerHypothesis(NamedTuple):
    """The state of each hypothesis. Every step reorders it, so it is small."""

    cache: Any  # `Kept.per_hypothesis`
    coverage: KerasTensor | tuple  # float32 (B, W, S): attention to source tokens; () untracked


class PerSentence(NamedTuple):
    """The state that the hypotheses of a sentence share. A field that a model lacks is ()."""

    cache: Any  # `Kept.per_sentence`
    memory: list[KeyValue] | list[StaticArrays] | tuple  # keys and values of each layer
    memory_mask: KerasTensor | tuple  # bool (B, 1, 1, S), True for source tokens
    padding: KerasTensor | tuple  # int32 (B,): columns of padding before a prompt
    last: KerasTensor | tuple  # int32 (B,): a prompt's last token


class DecoderParts(NamedTuple):
    """The parts of a model that a decoding step uses."""

    embedding: TokenEmbedding
    position: PositionEncoding
    decoder: Decoder
    output: TokenEmbedding  # makes logits from states


class Prompt(NamedTuple):
    """Prompts with padding on the left, so that their last tokens stand in one column."""

    before: KerasTensor  # int32 (B, P): all columns except the last
    last: KerasTensor  # int32 (B,): the last token of each prompt
    lengths: KerasTensor  # int32 (B,): number of tokens, with the start token

    @classmethod
    def of(cls, source: KerasTensor) -> "Prompt":
        """Makes `Prompt` from rows (B, S) that have the end id and then padding at the end."""
        # The first column is padding, because a reshape cannot infer sizes of an empty tensor.
        ids = ops.pad(align_right(source), ((0, 0), (1, 0)), constant_values=PAD_ID)
        return cls(ids[:, :-1], ids[:, -1], token_counts(ids))


class CachedDecoder:
    """The decoder of a translation model or of a language model as a step function.

    The constructor computes what all steps share: the keys and values of the memory or of the
    prompt for every layer, the position encodings, and the output projection. The hypotheses of a
    sentence share its keys and values.

    The prompts of a batch are padded on the left, so that all continuations start in the same
    column. One forward pass over all columns except the last fills the cache. The first step of the
    search reads the last token of each prompt. Absolute position encodings count the tokens of the
    text. Encodings that act on scores receive column numbers, so they may depend on differences of
    positions only.

    Args:
        parts: the parts of a built model.
        options: sizes of the search. On JAX, shapes are always static.
        source: int tensor (B, S) of ids with padding at the end. With a memory, its source ids.
            Without one, the prompts, each with the end id.
        memory: float tensor (B, S, D), the encoder's output; None for a language model.

    Call arguments:
        ids: int32 tensor (B, W), the newest tokens. The first step after a prompt reads the last
            token of the prompt in their place.
        state: `start`, or the state that the previous step returned.
        index: int32 scalar, the number of the step, from 0 on.

    Returns:
        logits (B, W, V) of the next tokens, and the new state.

    Raises:
        InputError: if there is a coverage penalty, but no memory.

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
        self,
        parts: DecoderParts,
        options: StepOptions,
        source: KerasTensor,
        memory: KerasTensor | None = None,
    ):
        if memory is None:
            require_no_penalty(options.coverage_penalty)
        self._parts = parts
        self._options = options
        self._attention = parts.decoder.layers[0].self_attention  # all layers have the same kind
        self._is_static = options.static_shapes or keras.backend.backend() == "jax"
        self._logits = step_logits(parts.output)
        self._prompt = Prompt.of(source) if memory is None else None
        self._columns: int | KerasTensor = 0  # columns of the prompt in the cache at the start
        self._most = options.max_length  # number of positions
        if self._prompt is not None:
            columns, window = ops.shape(self._prompt.before)[1], self._attention.window
            self._columns = columns if window is None else limited(columns + 1, window) - 1
            self._most = columns + options.max_length
            if parts.position.max_length is not None:  # a learned table
                self._most = ops.minimum(self._most, parts.position.max_length)
        self._encodings = parts.position.encodings(
            ops.arange(self._most), parts.decoder.config.d_model
        )
        self._cache = self._make_cache()
        start = (
            self._with_memory(source, memory)
            if self._prompt is None
            else self._after_prompt(self._prompt)
        )
        capacity = options.max_length if options.capacity is None else options.capacity
        self.start = self._resize(start, capacity)
        self.cache_schedule = None
        if self._is_static:
            self.cache_schedule = CacheSchedule((capacity, options.max_length), self._resize)

    def _make_cache(self) -> Cache:
        beam_size, window = self._options.beam_size, self._attention.window
        columns = None if self._prompt is None else self._columns
        if isinstance(self._attention, LinearAttention):
            return SumsCache(beam_size)
        if self._is_static:
            return StaticCache(beam_size, self._groups, columns, window)
        return GrowingCache(beam_size, columns, window)

    @property
    def _groups(self) -> int:
        return self._parts.decoder.config.num_key_value_heads

    def _with_memory(self, source: KerasTensor, memory: KerasTensor) -> StepState:
        """Makes the state before the first token of a translation."""
        layers, options = self._parts.decoder.layers, self._options
        batch, length = ops.shape(source)
        stored = [layer.cross_attention.keys_values(memory) for layer in layers]
        memories = [StaticArrays.of(part) for part in stored] if self._is_static else stored
        nothing = [layer.self_attention.nothing(batch) for layer in layers]
        kept = self._cache.start(nothing, None)
        coverage: KerasTensor | tuple = ()
        if options.coverage_penalty:
            coverage = no_coverage(batch, options.beam_size, length)
        return StepState(
            PerHypothesis(kept.per_hypothesis, coverage),
            PerSentence(kept.per_sentence, memories, padding_mask(source), (), ()),
        )

    def _after_prompt(self, prompt: Prompt) -> StepState:
        """Makes the state after all columns of a prompt except the last."""
        before, last, lengths = prompt
        columns = ops.shape(before)[1]
        outside = columns - self._columns  # columns before the window; no step attends to them
        padding = columns + 1 - lengths - outside
        positions = ops.arange(columns, dtype="int32") - outside
        mask = combine_masks(self._parts.decoder.sequence_mask(columns), padding_mask(before))
        x = self._embed(before, positions[None] - padding[:, None])
        stored: list = self._parts.decoder.run(x, None, mask, positions=positions).stored
        if self._attention.window is not None:
            stored = [KeyValue(*(part[:, :, outside:] for part in layer)) for layer in stored]
        is_text = ops.not_equal(before, PAD_ID)[:, None, outside:]  # (B, 1, P')
        kept = self._cache.start(stored, is_text)
        return StepState(
            PerHypothesis(kept.per_hypothesis, ()),
            PerSentence(kept.per_sentence, (), (), padding, last),
        )

    def __call__(
        self, ids: KerasTensor, state: StepState, index: KerasTensor
    ) -> tuple[KerasTensor, StepState]:
        decoder, index = self._parts.decoder, ops.convert_to_tensor(index, "int32")
        (of_hypotheses, coverage), (of_sentences, memory, mask, padding, last) = state
        step = self._cache.begin(Kept(of_hypotheses, of_sentences), index)
        position = places = self._columns + index
        if self._prompt is not None:
            ids = ops.where(ops.equal(index, 0), last[:, None], ids)
            places = (position - padding)[:, None]
        query_positions = ops.broadcast_to(position, (self._options.beam_size,))  # all are equal
        visible = self._attention.visible(query_positions[:1], step.positions)
        masks = combine_masks(step.mask, visible), None if isinstance(mask, tuple) else mask
        x, outputs = self._embed(ids, places), []
        positions = Positions.of(decoder.position, x, query_positions, step.positions)
        for layer, stored, before in zip(
            decoder.layers, self._memories(memory), step.earlier, strict=True
        ):
            outputs.append(layer.step(x, stored, *masks, positions, before))
            x = outputs[-1].output
        output = decoder.finish(x, outputs)
        if self._options.coverage_penalty:
            weights = output.cross_attention[-1]  # (B, H, W, S)
            coverage = coverage + ops.cast(ops.mean(weights, axis=1), "float32")
        kept = self._cache.commit(step, output.stored)
        return self._logits(output.output), _with_kept(state, kept, coverage)

    def bonus(self, state: StepState) -> KerasTensor:
        """Returns the coverage penalty (B, W) of hypotheses that end with the step of `state`."""
        is_source = state.per_sentence.memory_mask[:, 0]  # (B, 1, S)
        beta = self._options.coverage_penalty
        return coverage_penalty(state.per_hypothesis.coverage, is_source, beta)

    def _memories(self, memory: list | tuple) -> list[Stored | None]:
        if self._prompt is not None:
            return [None] * len(self._parts.decoder.layers)
        if self._is_static:
            return [StaticKeyValue(arrays, self._groups) for arrays in memory]
        return list(memory)

    def _embed(self, ids: KerasTensor, positions: KerasTensor) -> KerasTensor:
        """Embeds ids (B, T) at positions (B, T or 1), or all at one position: (B, T, D)."""
        x = self._parts.embedding(ids)
        if self._encodings is None:
            return x
        if self._prompt is not None:
            # Padding stands before position 0. A row at its limit may pass the last position.
            positions = ops.clip(positions, 0, self._most - 1)
        return x + ops.cast(ops.take(self._encodings, positions, axis=0), x.dtype)

    def _resize(self, state: StepState, steps: int | KerasTensor) -> StepState:
        """Changes the capacity of the state to a number of steps."""
        kept = Kept(state.per_hypothesis.cache, state.per_sentence.cache)
        return _with_kept(state, self._cache.resize(kept, steps), state.per_hypothesis.coverage)


def _with_kept(state: StepState, kept: Kept, coverage: KerasTensor | tuple) -> StepState:
    return StepState(
        PerHypothesis(kept.per_hypothesis, coverage),
        state.per_sentence._replace(cache=kept.per_sentence),
    )


def align_right(source: KerasTensor) -> KerasTensor:
    """Moves the padding of prompts to the left, adds the start id and drops the end id.

    Args:
        source: int tensor (B, S); each row has its tokens, the end id, then padding.

    Returns:
        int tensor (B, S): padding, the start id, then the tokens.

    Example:
        >>> np.asarray(align_right(np.array([[7, 8, 2], [9, 2, 0], [2, 0, 0]]))).tolist()
        [[1, 7, 8], [0, 1, 9], [0, 0, 1]]
    """
    columns = ops.shape(source)[1]
    padding = columns - token_counts(source)  # (B,)
    places = ops.arange(columns, dtype="int32")[None] - padding[:, None]  # (B, S)
    ids = ops.take_along_axis(shift_right(source), ops.maximum(places, 0), axis=1)
    return ops.where(places >= 0, ids, PAD_ID)
