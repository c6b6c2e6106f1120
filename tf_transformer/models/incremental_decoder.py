"""The decoder one position at a time: what a search steps through."""

from typing import NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding import Growth, StepState
from tf_transformer.layers import (
    Folded,
    KeyValue,
    attention_weights,
    laid_out_weights,
    lay_out,
    padding_mask,
)
from tf_transformer.layers.rows import from_rows, to_rows
from tf_transformer.models.transformer import Transformer

COMPACT_EVERY = 16  # steps; rows that no hypothesis descends from are dropped that often


class Own(NamedTuple):
    """What each hypothesis has for itself; small, because it is moved at every step."""

    sees: KerasTensor  # bool (B, W, R): the rows of the past that are its ancestors
    coverage: KerasTensor | tuple  # float32 (B, W, S): attention source tokens got; () untracked


class Shared(NamedTuple):
    """What the hypotheses of a sentence have in common; at a fixed size, as `lay_out` gives it."""

    past: list[KeyValue]  # a layer: (B, H, R, K), of chosen tokens
    memory: list[KeyValue] | list[Folded]  # a layer: (B, H, S, K), of the source
    memory_mask: KerasTensor  # bool (B, 1, 1, S), True for source tokens that are no padding


class IncrementalDecoder:
    """A Transformer's decoder as the step function of a search over a batch of sources.

    What all steps share is computed here, once: the memory's keys and values for every layer (once
    a sentence, not once a hypothesis), the encodings of positions, the output projection.

    Keys and values of chosen tokens are not moved about, either. A step appends those of its W
    tokens to one past of the sentence, R rows, and all hypotheses attend to that, each with a
    mask that shows its own line of ancestors. When the beam is reordered the masks move and the
    rows stay. Since the hypotheses of a beam soon descend from the same few tokens, most rows
    die; every `COMPACT_EVERY` steps those are dropped.

    Args:
        model: the Transformer, built.
        source: int tensor (B, S) of ids.
        beam_size: hypotheses a sentence, W.
        max_length: the most steps, L.
        fixed_size: whether the past keeps its size from step to step, as XLA and JAX need it;
            else it grows by a position a step, and no step costs more than it must.
        track_coverage: whether the state holds how much attention each source token got.
        alone: whether the batch is a single sentence, of no more tokens than a head is large.
            Steps then read as few weights as they can.
        room: how many positions a past of fixed size has room for until `growth` widens it; all
            L when None.
        output_projection: `TokenEmbedding.projection` of the output embedding, (D, V), where that
            is at hand; else it is worked out.

    Call arguments:
        ids: int32 tensor (B, W), the tokens at position `index`.
        state: `start`, or what the step before gave.
        index: int32 scalar, the position.

    Returns:
        logits (B, W, V) of the tokens that follow, and the new state.

    Example:
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
        fixed_size: bool | None = None,
        track_coverage: bool = False,
        alone: bool = False,
        room: int | KerasTensor | None = None,
        output_projection: KerasTensor | None = None,
    ):
        self._model = model
        self._beam_size = beam_size
        self._track_coverage = track_coverage
        self._alone = alone
        self._fixed_size = keras.backend.backend() == "jax" if fixed_size is None else fixed_size
        self._positions = model.target_position.encodings(max_length, model.config.d_model)
        # A single row loses less with the matrix as it lies than it takes to transpose that, unless
        # the translation is long.
        as_it_lies = alone and beam_size == 1
        if output_projection is None and not as_it_lies:
            output_projection = model.output_embedding.projection()
        self._output_projection = output_projection
        room = max_length if room is None else room
        self.start = self._start(source, room)
        self.growth = Growth((room, max_length), self._widen) if self._fixed_size else None

    def _start(self, source: KerasTensor, room) -> StepState:
        batch, source_length = ops.shape(source)
        rows = room * self._beam_size
        if not self._fixed_size:
            # 0, but worked out, so that TensorFlow takes the size for one that may change.
            rows = ops.cast(0 * ops.sum(source), "int32")
        heads, dtype = self._model.config.num_heads, self._model.compute_dtype

        def zeros(size: int) -> KerasTensor:
            return ops.zeros((batch, heads, rows, size), dtype)

        memory = self._memory(source)
        past = [KeyValue(*map(zeros, self._model.config.head_dims)) for _ in memory]
        if self._fixed_size:
            past = list(map(lay_out, past))
        sees = ops.zeros((batch, self._beam_size, rows), "bool")
        coverage: KerasTensor | tuple = ()
        if self._track_coverage:
            coverage = ops.zeros((batch, self._beam_size, source_length), "float32")
        return StepState(Own(sees, coverage), Shared(past, memory, padding_mask(source)))

    def _memory(self, source: KerasTensor) -> list[KeyValue] | list[Folded]:
        memory = self._model.decoder.project_memory(self._model.encode(source))
        if self._alone and not (self._track_coverage or self._model.config.attention_bias):
            return self._model.decoder.fold_memory(memory)
        return list(map(lay_out, memory)) if self._fixed_size else memory

    def __call__(
        self, ids: KerasTensor, state: StepState, index: KerasTensor
    ) -> tuple[KerasTensor, StepState]:
        x = self._model.target_embedding(ids)  # (B, W, D)
        x = x + ops.cast(ops.take(self._positions, index, axis=0), x.dtype)
        (sees, coverage), (past, memory, memory_mask) = state
        if self._beam_size > 1 and not self._fixed_size:
            sees, past = ops.cond(
                ops.equal(index % COMPACT_EVERY, COMPACT_EVERY - 1),
                lambda: _drop_dead_rows(sees, past),
                lambda: (sees, past),
            )
        own_row = ops.broadcast_to(
            ops.eye(self._beam_size, dtype="bool"), (ops.shape(ids)[0], *[self._beam_size] * 2)
        )
        start = index * self._beam_size  # of this position's rows, in a past of fixed size
        if self._fixed_size:
            sees = ops.slice_update(sees, (0, 0, start), own_row)  # (B, W, R)
        else:
            sees = ops.concatenate([sees, own_row], axis=2)
        # Alone in its past, a hypothesis sees all of it.
        mask = None if self._beam_size == 1 and not self._fixed_size else sees[:, None]

        def append(past: KeyValue, new: KeyValue) -> KeyValue:
            return _written(past, lay_out(new), start) if self._fixed_size else _grown(past, new)

        step, past = self._model.decoder.step(
            *(x, past, append, memory, mask, memory_mask), compiled=self._fixed_size
        )
        if self._track_coverage:
            # Of the last layer, (B, H, W, S).
            weights_of = laid_out_weights if self._fixed_size else attention_weights
            weights = weights_of(step.memory_query, memory[-1].key, memory_mask)
            coverage = coverage + ops.cast(ops.mean(weights, axis=1), "float32")
        return self._logits(step.output), StepState(
            Own(sees, coverage), Shared(past, memory, memory_mask)
        )

    def _widen(self, state: StepState, room) -> StepState:
        """The state with room for so many positions, in a past of fixed size."""
        (sees, coverage), (past, memory, memory_mask) = state
        rows = room * self._beam_size
        past = [KeyValue(_padded(key, rows, 2), _padded(value, rows, 1)) for key, value in past]
        return StepState(Own(_padded(sees, rows, 2), coverage), Shared(past, memory, memory_mask))

    def _logits(self, x: KerasTensor) -> KerasTensor:
        """(B, W, D) to (B, W, V)."""
        if self._output_projection is None:
            return self._model.output_embedding.logits(x)
        return from_rows(ops.matmul(to_rows(x), self._output_projection), like=x)


def _grown(past: KeyValue, new: KeyValue) -> KeyValue:
    """The past (B, H, R, K) and this position's rows (B, H, W, K) after it."""
    return KeyValue(*(ops.concatenate(pair, axis=2) for pair in zip(past, new, strict=True)))


def _written(past: KeyValue, new: KeyValue, start: KerasTensor) -> KeyValue:
    """The past with this position's rows written into it, both laid out."""
    return KeyValue(
        ops.slice_update(past.key, (0, 0, start), new.key),
        ops.slice_update(past.value, (0, start, 0), new.value),
    )


def _padded(x: KerasTensor, size, axis: int) -> KerasTensor:
    """`x` with zeros after it, up to a size along an axis."""
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


def _drop_dead_rows(sees: KerasTensor, past: list[KeyValue]) -> tuple[KerasTensor, list[KeyValue]]:
    """Keeps the rows that some hypothesis descends from, as many as the sentence with most has."""
    alive = ops.any(sees, axis=1)  # (B, R)
    count = ops.max(ops.sum(ops.cast(alive, "int32"), axis=1))
    rows = ops.arange(ops.shape(alive)[1], dtype="int32")
    last = ops.where(alive, rows, rows + ops.shape(alive)[1])  # the dead after all others
    kept = ops.argsort(last, axis=1)[:, :count]  # (B, R')
    past = [KeyValue(*(_pick_rows(field, kept) for field in layer)) for layer in past]
    return _pick_rows(sees, kept), past


def _pick_rows(values: KerasTensor, rows: KerasTensor) -> KerasTensor:
    """values[b, x, rows[b, r]]: (B, X, R, ...) by (B, R') to (B, X, R', ...)."""
    batch, groups, count, *rest = ops.shape(values)
    starts = ops.arange(batch * groups, dtype="int32") * count
    flat = ops.reshape(starts, (batch, groups, 1)) + ops.cast(rows, "int32")[:, None]
    return ops.take(ops.reshape(values, (-1, *rest)), flat, axis=0)


def coverage_penalty(state: StepState, beta: float) -> KerasTensor:
    """β Σ ln(min(attention a source token got, 1)) (Wu et al. 2016, equation 14).

    Args:
        state: of an `IncrementalDecoder`, after the step.
        beta: β.

    Returns:
        float32 tensor (B, W), at most 0: what to add to the scores of hypotheses that end.
    """
    covered = ops.clip(state.own.coverage, 1e-9, 1.0)
    is_text = state.shared.memory_mask[:, 0]  # (B, 1, S)
    return beta * ops.sum(ops.where(is_text, ops.log(covered), 0.0), axis=-1)
