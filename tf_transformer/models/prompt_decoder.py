"""The step function of a search for continuations of prompts, without a memory."""

from typing import NamedTuple

from keras import KerasTensor, ops

from tf_transformer.decoding.coverage import require_no_penalty
from tf_transformer.decoding.problem import StepOptions, StepState
from tf_transformer.decoding.static_cache import limited
from tf_transformer.layers.masks import padding_mask
from tf_transformer.layers.stored import KeyValue
from tf_transformer.models.cached_decoder import CachedDecoder, DecoderParts
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import PAD_ID


class Shared(NamedTuple):
    """What the hypotheses of a prompt share."""

    padding: KerasTensor  # int32 (B,): columns of padding before a prompt
    last: KerasTensor  # int32 (B,): a prompt's last token


class PromptDecoder(CachedDecoder):
    """The decoder of a language model, which continues prompts.

    The prompts of a batch are padded on the left, so that all continuations start in the same
    column. One forward pass over all columns except the last fills the cache. The first step of the
    search reads the last token of each prompt in place of its ids. Absolute position encodings
    count the tokens of the text. Encodings that act on scores receive column numbers, so they may
    depend on differences of positions only.

    The source is int (B, S): the prompts, each with the end id, then padding.
    """

    def __init__(self, parts: DecoderParts, options: StepOptions, source: KerasTensor):
        require_no_penalty(options.coverage_penalty)
        # The first column is padding, because a reshape cannot infer sizes of an empty tensor.
        ids = ops.pad(align_right(source), ((0, 0), (1, 0)), constant_values=PAD_ID)
        before, last, lengths = ids[:, :-1], ids[:, -1], token_counts(ids)
        length, window = ops.shape(before)[1], parts.decoder.layers[0].self_attention.window
        columns = length if window is None else limited(length + 1, window) - 1
        most = length + options.max_length
        if parts.position.max_length is not None:  # a learned table
            most = ops.minimum(most, parts.position.max_length)
        self._most = most
        super().__init__(parts, options, most, columns)
        self.begin_with(self._after(before, last, lengths))

    def _after(self, before: KerasTensor, last: KerasTensor, lengths: KerasTensor) -> StepState:
        """Makes the state after the columns `before` (B, P), which `last` tokens (B,) follow."""
        columns = ops.shape(before)[1]
        outside = columns - self._columns  # columns before the window; no step attends to them
        padding = columns + 1 - lengths - outside
        positions = ops.arange(columns, dtype="int32") - outside
        x = self._embed(before, positions[None] - padding[:, None])
        decoded = self._parts.decoder.call(
            x, attention_mask=padding_mask(before), positions=positions
        )
        stored: list = decoded.stored
        if self._attention.window is not None:
            stored = [KeyValue(*(part[:, :, outside:] for part in layer)) for layer in stored]
        is_text = ops.not_equal(before, PAD_ID)[:, None, outside:]  # (B, 1, P')
        return self.state_of(self._cache.start(stored, is_text), Shared(padding, last))

    def _embed_newest(
        self, ids: KerasTensor, position: KerasTensor, index: KerasTensor, shared: Shared
    ) -> KerasTensor:
        ids = ops.where(ops.equal(index, 0), shared.last[:, None], ids)
        return self._embed(ids, (position - shared.padding)[:, None])

    def _within_table(self, positions: KerasTensor) -> KerasTensor:
        # Padding stands before position 0. A row at its limit may pass the last position.
        return ops.clip(positions, 0, self._most - 1)


def align_right(source: KerasTensor) -> KerasTensor:
    """Moves the padding of prompts (B, S) to the left, adds the start id and drops the end id.

    Example:
        >>> np.asarray(align_right(np.array([[7, 8, 2], [9, 2, 0], [2, 0, 0]]))).tolist()
        [[1, 7, 8], [0, 1, 9], [0, 0, 1]]
    """
    columns = ops.shape(source)[1]
    padding = columns - token_counts(source)  # (B,)
    places = ops.arange(columns, dtype="int32")[None] - padding[:, None]  # (B, S)
    ids = ops.take_along_axis(shift_right(source), ops.maximum(places, 0), axis=1)
    return ops.where(places >= 0, ids, PAD_ID)
