"""A model, a batch of ids and a `DecodeConfig`: the search that the configuration asks for."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf
from keras import ops

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.decoding import (
    Constraints,
    Hypotheses,
    Sampling,
    SpecialIds,
    StepState,
    beam_search,
    greedy_search,
    length_penalty,
    sample,
)
from tf_transformer.models.incremental_decoder import IncrementalDecoder, coverage_penalty
from tf_transformer.models.transformer import Transformer
from tf_transformer.sequences import shift_right, token_counts
from tf_transformer.special_ids import BOS_ID, EOS_ID, PAD_ID

ROUNDING = 1e-3  # so that 100 · 0.53, a little under 53 in float32, is 53
_WEYL = 0x9E3779B97F4A7C15  # odd, 2⁶⁴ over the golden ratio: the step of SplitMix64
SPECIAL = SpecialIds(pad=PAD_ID, start=BOS_ID, end=EOS_ID)


class Score(NamedTuple):
    """What a model gives a translation."""

    score: tf.Tensor  # float32 (B,): log-probability over length penalty
    log_probability: tf.Tensor  # float32 (B,), nats


@dataclass(frozen=True)
class Search:
    """How a model translates ids.

    Args:
        model: the built Transformer.
        config: what to search for.
        excluded: ids no translation may hold, besides padding and start.
        fixed_size: whether every tensor keeps its size from step to step, as XLA needs it.

    Call arguments:
        source: int32 tensor (B, S), each row ending with the end id, then padding. Rows of the
            end id alone, or of nothing, cost one step.
        prefix: int32 tensor (B, P) of ids that translations start with, then padding; P may be 0.
            Cut where a learned position table ends.
        output_projection: `TokenEmbedding.projection` of the output embedding, (D, V), where that
            is at hand; else each call works it out.

    Returns:
        `Hypotheses`, `config.num_hypotheses` a sentence.
    """

    model: Transformer
    config: DecodeConfig
    excluded: tuple[int, ...] = ()
    fixed_size: bool = False

    def __call__(
        self,
        source: tf.Tensor,
        prefix: tf.Tensor | None = None,
        output_projection: tf.Tensor | None = None,
    ) -> Hypotheses:
        config = self.config
        lengths = token_counts(source)
        limits = longest(lengths, config, self.model.config)
        limits = ops.where(lengths > 1, limits, 1)
        max_length = longest(ops.shape(source)[1], config, self.model.config)
        if prefix is not None:  # room for the prefix and a token more
            if self.model.config.position == "learned":
                prefix = prefix[:, : self.model.config.max_length - 1]
            limits = ops.maximum(limits, token_counts(prefix) + 1)
            max_length = ops.maximum(max_length, ops.shape(prefix)[1] + 1)
        constraints = Constraints(
            min_lengths=shortest(lengths, limits, config),
            prefix=prefix,
            excluded=self.excluded,
            no_repeat_ngram_size=config.no_repeat_ngram_size,
            repetition_penalty=config.repetition_penalty,
        )
        rows, length = ops.shape(source)
        alone = ops.logical_and(
            ops.equal(rows, 1), ops.less_equal(length, self.model.config.head_dims[0])
        )

        def run(alone: bool) -> Hypotheses:
            return self._run(source, limits, max_length, constraints, alone, output_projection)

        return ops.cond(alone, lambda: run(alone=True), lambda: run(alone=False))

    def _run(
        self, source, limits, max_length, constraints: Constraints, alone: bool, output_projection
    ) -> Hypotheses:
        """The search; `alone`: in the way that is faster for one sentence, and a short one."""
        config = self.config
        rows = config.num_hypotheses if config.sampling else config.beam_size
        step = IncrementalDecoder(
            *(self.model, source, rows, max_length, self.fixed_size),
            track_coverage=config.coverage_penalty > 0,
            alone=alone,
            # A third of the most tokens there may be is nearly always enough.
            room=(max_length + 2) // 3,
            output_projection=output_projection,
        )
        common = (step, step.start, limits, max_length, SPECIAL)
        how: dict[str, Any] = {
            "alpha": config.length_penalty,
            "constraints": constraints,
            # Where the batch's size is known, a graph is made for that size.
            "shrink": not (self.fixed_size or alone) and source.shape[0] is None,
            "compiled": self.fixed_size,
            "growth": step.growth,
        }
        if config.sampling:
            numbers = random_numbers(source, rows, max_length, config.seed)
            sampling = Sampling(config.temperature, config.top_k, config.top_p)
            return sample(*common, numbers, self.model.vocabulary_size, sampling, **how)
        if rows == 1 and not config.coverage_penalty:
            return greedy_search(*common, **how)
        return beam_search(
            *common,
            beam_size=rows,
            num_hypotheses=config.num_hypotheses,
            bonus=self._coverage if config.coverage_penalty else None,
            **how,
        )

    def _coverage(self, state: StepState) -> tf.Tensor:
        return coverage_penalty(state, self.config.coverage_penalty)


def score_pairs(model: Transformer, source: tf.Tensor, target: tf.Tensor, alpha: float) -> Score:
    """What the model gives translations that are already there.

    Args:
        model: the Transformer.
        source: int32 tensor (B, S), each row ending with the end id, then padding.
        target: int32 tensor (B, T), likewise.
        alpha: exponent of the length penalty.
    """
    logits = model((source, shift_right(target)))  # (B, T, V)
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    of_tokens = tf.gather(log_p, target, batch_dims=2)  # (B, T)
    total = ops.sum(ops.where(ops.not_equal(target, PAD_ID), of_tokens, 0.0), axis=1)
    return Score(total / length_penalty(token_counts(target), alpha), total)


def longest(lengths, config: DecodeConfig, model_config: ModelConfig):
    """The most target tokens for sources of `lengths` tokens (paper section 6.1: 50 more)."""
    most = lengths
    if config.max_length_ratio != 1:
        scaled = ops.cast(lengths, "float32") * config.max_length_ratio
        most = ops.cast(scaled + ROUNDING, "int32")
    most = most + config.max_extra_length
    if config.max_length:
        most = ops.minimum(most, config.max_length)
    if model_config.position == "learned":
        most = ops.minimum(most, model_config.max_length)
    return ops.maximum(most, 1)


def shortest(lengths, limits, config: DecodeConfig):
    """The fewest target tokens, at most the limit; None where nothing asks for any."""
    if not config.min_length and not config.min_length_ratio:
        return None
    scaled = ops.cast(lengths, "float32") * config.min_length_ratio
    fewest = ops.cast(ops.ceil(scaled - ROUNDING), "int32")
    return ops.minimum(ops.maximum(fewest, config.min_length), limits)


def random_numbers(source: tf.Tensor, rows: int, length: tf.Tensor, seed: int) -> tf.Tensor:
    """Numbers (B, N, L), uniform in [0, 1), that depend on the seed and a sentence's own ids.

    So a sentence draws the same whatever batch it is in, and however far that is padded; and under
    XLA, where TensorFlow's own generators draw other numbers, too.
    """
    ids = tf.cast(source, tf.uint64)
    powers = tf.math.cumprod(tf.fill(tf.shape(ids)[1:], _unsigned(_WEYL)), exclusive=True)
    sentences = _mixed(tf.reduce_sum(ids * powers, axis=1))  # (B,): padding, id 0, adds nothing
    starts = _mixed(sentences + _unsigned(seed % 2**64))
    steps = tf.cast(tf.range(length), tf.uint64)
    places = tf.cast(tf.range(rows), tf.uint64)[:, None] * _unsigned(2**32) + steps  # (N, L)
    bits = _mixed(starts[:, None, None] + places * _unsigned(_WEYL))
    return tf.cast(tf.bitwise.right_shift(bits, _unsigned(40)), tf.float32) / 2**24


def _mixed(x: tf.Tensor) -> tf.Tensor:
    """SplitMix64's bijection of uint64 (Steele et al. 2014): every bit moves every other."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(x, _unsigned(shift))
        x = tf.bitwise.bitwise_xor(x, shifted) * _unsigned(factor)
    return x


def _unsigned(number: int) -> tf.Tensor:
    return tf.constant(number, tf.uint64)
