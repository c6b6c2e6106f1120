"""The search that a `DecodeConfig` describes, for a model and a batch of ids."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import tensorflow as tf
from keras import ops

from tf_transformer import decoding, kernels
from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses, LengthPenalty, StepState
from tf_transformer.inference.step_products import for_steps
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.thresholds import INITIAL_CAPACITY_DIVISOR
from tf_transformer.text.sequences import shift_right, token_counts
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID

ROUNDING = 1e-3  # 100 · 0.53 is slightly below 53 in float32, and must give 53
_WEYL = 0x9E3779B97F4A7C15  # the step of SplitMix64: 2⁶⁴ divided by the golden ratio, odd
SPECIAL = decoding.SpecialIds(pad=PAD_ID, start=BOS_ID, end=EOS_ID)


class Score(NamedTuple):
    """The score of a translation under a model."""

    score: tf.Tensor  # float32 (B,): log-probability divided by the length penalty
    log_probability: tf.Tensor  # float32 (B,), nats


class ModelStep(Protocol):
    """A model's step function for a batch of sources (`decoding.StepFunction`)."""

    start: StepState  # the first state
    # The capacities of a static state; None: capacity for the whole search.
    cache_schedule: decoding.CacheSchedule | None

    def __call__(self, ids: tf.Tensor, state: StepState, index: tf.Tensor) -> tuple[Any, StepState]:
        """The logits of the next tokens, and the new state."""

    def bonus(self, state: StepState) -> tf.Tensor:
        """The coverage term (B, W) of finished hypotheses; only for `coverage_penalty`."""


class SearchModel(Protocol):
    """The interface of a model for a search, such as `Transformer`."""

    def max_target_length(self, source_length: int | tf.Tensor) -> int | tf.Tensor | None:
        """The largest number of target tokens for a length of the source; None: any number."""

    def step_function(self, source: tf.Tensor, options: decoding.StepOptions) -> ModelStep:
        """The step function for sources, int32 (B, S), each with the end id and then padding."""


@dataclass(frozen=True)
class Search:
    """The search for translations of ids, as a `DecodeConfig` describes it.

    Call arguments:
        source: int32 tensor (B, S), each row with the end id and then padding. A row shorter than
            `shortest_source` takes one step.
        given: fields of the `Problem` by name, such as prefix (B, P); P may be 0. Prefixes are cut
            before the model's last position.
    """

    model: SearchModel  # built
    config: DecodeConfig
    excluded: tuple[int, ...] = ()  # ids that no translation contains, besides padding and start
    static_shapes: bool = False  # whether tensors keep their shapes between steps, as in XLA
    # Rules for the tokens that may follow a token. Its method `facts` takes sources (B, S) and
    # limits (B,), and returns the facts of each sentence. None: no rules.
    grammar: Any = None
    word_starts: tuple[int, ...] = ()  # ids of pieces that begin a word; see `Problem.prefix`
    word_ends: tuple[int, ...] = ()  # ids of pieces that may follow a word; see `Problem.terms`
    # The fewest source tokens, with the end token, that are searched. 2: an empty text has an empty
    # translation. 1: an empty prompt has continuations.
    shortest_source: int = 2

    @own_settings()
    def __call__(
        self, source: tf.Tensor, given: Mapping[str, tf.Tensor] | None = None
    ) -> Hypotheses:
        config, model = self.config, self.model
        if not self.static_shapes:  # in a graph, the sizes of the batch and of the cache may change
            source = tf.raw_ops.PlaceholderWithDefault(input=source, shape=[None, None])
        lengths = token_counts(source)
        limits = max_target_lengths(lengths, config, model.max_target_length(lengths))
        limits = ops.where(lengths >= self.shortest_source, limits, 1)
        longest = model.max_target_length(1)  # for any source
        max_length = max_target_lengths(ops.shape(source)[1], config, longest)
        given = dict(given or {})
        if "prefix" in given:  # limits leave room for the prefix and one more token
            prefix = given["prefix"]
            if longest is not None:
                given["prefix"] = prefix = prefix[:, : longest - 1]
            limits = ops.maximum(limits, token_counts(prefix) + 1)
            max_length = ops.maximum(max_length, ops.shape(prefix)[1] + 1)
        if "terms" in given:  # beside the source's limit, so that they do not shorten the rest
            before = token_counts(given["prefix"]) if "prefix" in given else 0
            counts = token_counts(given["terms"])
            if longest is not None:  # terms that do not fit are left out
                fits = before + counts < longest
                given["terms"] = ops.where(fits[:, None], given["terms"], PAD_ID)
                counts = ops.where(fits, counts, 0)
            limits = ops.maximum(limits, before + counts + 1)
            max_length = ops.maximum(max_length, ops.max(limits))
        problem = decoding.Problem(
            limits=limits,
            min_lengths=min_target_lengths(lengths, limits, config),
            facts=() if self.grammar is None else self.grammar.facts(source, limits),
            **given,
        )
        with kernels.use(kernels.for_xla() if self.static_shapes else for_steps()):
            return self._run(source, problem, max_length)

    def _run(
        self, source: tf.Tensor, problem: decoding.Problem, max_length: tf.Tensor
    ) -> Hypotheses:
        config = self.config
        if not decoding.is_off(problem.terms):  # in any search, terms need a beam
            rows = max(config.beam_size, config.num_hypotheses, decoding.SMALLEST_BEAM)
            config = replace(config, beam_size=rows, sampling=False)
        rows = config.num_hypotheses if config.sampling else config.beam_size
        capacity = (max_length + INITIAL_CAPACITY_DIVISOR - 1) // INITIAL_CAPACITY_DIVISOR
        sizes = decoding.StepOptions(
            rows, max_length, self.static_shapes, capacity, config.coverage_penalty
        )
        model_step = self.model.step_function(source, sizes)
        bonus = model_step.bonus if config.coverage_penalty else None
        step = decoding.Step(model_step, model_step.start, model_step.cache_schedule, bonus)
        options = decoding.SearchOptions(
            max_length,
            SPECIAL,
            beam_size=rows,
            num_hypotheses=config.num_hypotheses,
            penalty=penalty_of(config),
            early_stopping=config.early_stopping,
            constraints=decoding.Constraints(
                word_starts=self.word_starts,
                word_ends=self.word_ends,
                excluded=self.excluded,
                no_repeat_ngram_size=config.no_repeat_ngram_size,
                repetition_penalty=config.repetition_penalty,
                grammar=self.grammar,
            ),
            # A graph with a fixed batch size cannot remove finished sentences.
            drop_finished=not self.static_shapes and source.shape[0] is None,
        )
        if config.sampling:
            uniforms = random_numbers(source, rows, max_length, config.seed)
            sampling = decoding.Sampling(config.temperature, config.top_k, config.top_p)
            return decoding.sample(step, problem._replace(uniforms=uniforms), options, sampling)
        if rows == 1 and not config.coverage_penalty:
            return decoding.greedy_search(step, problem, options)
        return decoding.beam_search(step, problem, options)


@own_settings()
def score_pairs(model: Any, source: tf.Tensor, target: tf.Tensor, penalty: LengthPenalty) -> Score:
    """Scores given translations. A pair of empty sentences (the end token alone) has score 0.

    The model is a function from (source, target shifted right) to logits, like the Transformer. Ids
    are int32 (B, S) and (B, T), each row with the end id and then padding.
    """
    of_tokens = token_log_probabilities(model, source, target)
    has_text = ops.maximum(token_counts(source), token_counts(target)) > 1  # (B,)
    total = ops.sum(ops.where(has_text[:, None], of_tokens, 0.0), axis=1)
    return Score(total / penalty(token_counts(target)), total)


@own_settings()
def token_log_probabilities(model: Any, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """The log-probability of each token of given translations, float32 (B, T), nats; 0: padding.

    Arguments are those of `score_pairs`.
    """
    logits = model((source, shift_right(target)))  # (B, T, V)
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    of_tokens = tf.gather(log_p, target, batch_dims=2)  # (B, T)
    return ops.where(ops.not_equal(target, PAD_ID), of_tokens, 0.0)


@own_settings()
def log_probabilities(model: Any, before: tf.Tensor, ids: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
    """The log-probability of each row of ids under a language model, float64 (B,), nats.

    The model is a function from ids (B, T) to logits (B, T, V) of the next ids. `before`, int32
    (B,), has the id before each row of `ids`, int32 (B, T); `start` the index of the first id that
    counts.
    """
    logits = model(ops.concatenate([before[:, None], ids[:, :-1]], axis=1))  # (B, T, V)
    log_p = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    of_tokens = ops.cast(tf.gather(log_p, ids, batch_dims=2), "float64")  # (B, T)
    counted = ops.arange(ops.shape(ids)[1], dtype="int32")[None] >= start[:, None]
    counted = ops.logical_and(counted, ops.not_equal(ids, PAD_ID))
    return ops.sum(ops.where(counted, of_tokens, 0.0), axis=1)


def penalty_of(config: DecodeConfig) -> LengthPenalty:
    """The length penalty of a configuration."""
    return LengthPenalty(config.length_penalty, config.length_penalty_offset)


def max_target_lengths(
    lengths: int | tf.Tensor, config: DecodeConfig, limit: int | tf.Tensor | None = None
) -> tf.Tensor:
    """The largest number of target tokens for each source (section 6.1: source length + 50).

    All numbers count the end token. They are int, or int tensors (B,). `limit` is the limit of the
    model, `SearchModel.max_target_length`; None: no limit.
    """
    most = lengths
    if config.max_length_ratio != 1:
        scaled = ops.cast(lengths, "float32") * config.max_length_ratio
        most = ops.cast(scaled + ROUNDING, "int32")
    most = most + config.max_extra_length
    if config.max_length:
        most = ops.minimum(most, config.max_length)
    if limit is not None:
        most = ops.minimum(most, limit)
    return ops.maximum(most, 1)


def min_target_lengths(
    lengths: int | tf.Tensor, limits: int | tf.Tensor, config: DecodeConfig
) -> tf.Tensor | tuple:
    """Smallest number of target tokens, at most the limit; () without a minimum.

    The options count tokens of text; these numbers, like `lengths`, count the end token.
    """
    if not config.min_length and not config.min_length_ratio:
        return ()
    scaled = ops.cast(lengths - 1, "float32") * config.min_length_ratio
    fewest = ops.cast(ops.ceil(scaled - ROUNDING), "int32")
    return ops.minimum(ops.maximum(fewest, config.min_length) + 1, limits)


def random_numbers(source: tf.Tensor, rows: int, length: tf.Tensor, seed: int) -> tf.Tensor:
    """Random numbers for sampling, float32 (B, N, L), uniform in [0, 1).

    They are a function of the seed and the ids of each sentence, int32 (B, S). So a sentence draws
    the same numbers in any batch, with any padding, and under XLA. TensorFlow's generators draw
    different numbers under XLA. N is the number of samples, and L the largest number of steps.
    """
    ids = tf.cast(source, tf.uint64)
    powers = tf.math.cumprod(tf.fill(tf.shape(ids)[1:], _unsigned(_WEYL)), exclusive=True)
    sentences = _mix(tf.reduce_sum(ids * powers, axis=1))  # (B,): padding has id 0 and adds 0
    starts = _mix(sentences + _unsigned(seed % 2**64))
    steps = tf.cast(tf.range(length), tf.uint64)
    places = tf.cast(tf.range(rows), tf.uint64)[:, None] * _unsigned(2**32) + steps  # (N, L)
    bits = _mix(starts[:, None, None] + places * _unsigned(_WEYL))
    return tf.cast(tf.bitwise.right_shift(bits, _unsigned(40)), tf.float32) / 2**24


def _mix(x: tf.Tensor) -> tf.Tensor:
    """SplitMix64's bijection of uint64 (Steele et al. 2014): each bit affects all bits."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        shifted = tf.bitwise.right_shift(x, _unsigned(shift))
        x = tf.bitwise.bitwise_xor(x, shifted) * _unsigned(factor)
    return x


def _unsigned(number: int) -> tf.Tensor:
    return tf.constant(number, tf.uint64)
