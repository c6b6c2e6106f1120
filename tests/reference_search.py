"""Oracles for search: plain NumPy over lists of hypotheses, one sentence at a time.

A "language" is a function from the tokens chosen so far to the logits of the next token.
`PrefixTables` holds many random languages, both as such functions and as one step function, so
that a search runs on a whole batch of random cases at once.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from keras import ops

from tf_transformer.decoding import StepState

Language = Callable[[tuple[int, ...]], np.ndarray]  # tokens chosen so far -> logits (V,)
Bonus = Callable[[tuple[int, ...]], float]  # tokens before the last -> added to the score


class Hypothesis(NamedTuple):
    ids: tuple[int, ...]
    log_probability: float
    score: float


class Rules(NamedTuple):
    """The constraints of one sentence; see `Constraints`."""

    min_length: int = 0
    prefix: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0


def log_softmax(logits) -> np.ndarray:
    """In float64: x - max - ln Σ exp(x - max)."""
    shifted = np.asarray(logits, np.float64) - np.max(logits)
    return shifted - np.log(np.exp(shifted).sum())


def log_probability(language: Language, ids, rules: Rules = Rules()) -> float:
    """Σ ln p(token | tokens before it).

    A repeated token counts `repetition_penalty` times, unless it is part of the prefix.
    """
    total = 0.0
    for n, token in enumerate(ids):
        repeated = n >= len(rules.prefix) and token in ids[:n]
        factor = rules.repetition_penalty if repeated else 1.0
        total += factor * log_softmax(language(tuple(ids[:n])))[token]
    return total


def scored(ids, log_p: float, alpha: float, bonus: Bonus | None = None) -> Hypothesis:
    """A hypothesis with its score: length penalty ((5 + length) / 6)^α, with the end token."""
    score = log_p / ((5 + len(ids)) / 6) ** alpha
    if bonus is not None:
        score += bonus(tuple(ids[:-1]))
    return Hypothesis(tuple(ids), float(log_p), float(score))


def all_sequences(vocabulary_size: int, limit: int, special) -> Iterator[tuple[int, ...]]:
    """Every sequence that ends with the end token, or has `limit` tokens and no end token."""
    ordinary = [i for i in range(vocabulary_size) if i not in special]
    for length in range(limit):
        for tokens in itertools.product(ordinary, repeat=length):
            yield (*tokens, special.end)
    yield from itertools.product(ordinary, repeat=limit)


def repeats(ids: tuple[int, ...], size: int) -> list[int]:
    """The last position of each n-gram that occurred before."""
    grams = [ids[n - size + 1 : n + 1] for n in range(size - 1, len(ids))]
    return [size - 1 + n for n, gram in enumerate(grams) if gram in grams[:n]]


def obeys(ids: tuple[int, ...], limit: int, special, rules: Rules) -> bool:
    """Whether a whole hypothesis obeys the rules, which apply after the prefix."""
    forced = min(len(rules.prefix), limit)
    if ids[:forced] != rules.prefix[:forced]:
        return False
    if len(ids) == forced:
        return True
    if special.end in ids and len(ids) < min(rules.min_length, limit):
        return False
    if rules.no_repeat_ngram_size and any(
        n >= forced for n in repeats(ids, rules.no_repeat_ngram_size)
    ):
        return False
    return not set(ids[forced:]) & set(rules.excluded)


def brute_force(
    language: Language,
    vocabulary_size: int,
    limit: int,
    special,
    alpha: float,
    rules: Rules = Rules(),
) -> list[Hypothesis]:
    """All hypotheses that obey the rules, best first."""
    allowed = (
        scored(ids, log_probability(language, ids, rules), alpha)
        for ids in all_sequences(vocabulary_size, limit, special)
        if obeys(ids, limit, special, rules)
    )
    return sorted(allowed, key=lambda hypothesis: -hypothesis.score)


def next_tokens(
    language: Language, ids: tuple[int, ...], limit: int, special, rules: Rules
) -> dict[int, float]:
    """The log-probability that each allowed next token adds, in the order of ids."""
    log_p = log_softmax(language(ids))
    length = len(ids) + 1
    if length <= len(rules.prefix):
        token = rules.prefix[length - 1]
        return {token: log_p[token]}
    excluded = {special.pad, special.start, *rules.excluded}
    if length < min(rules.min_length, limit):
        excluded.add(special.end)
    size = rules.no_repeat_ngram_size
    return {
        token: value * (rules.repetition_penalty if token in ids else 1.0)
        for token, value in enumerate(log_p)
        if token not in excluded and not (size and length - 1 in repeats((*ids, token), size))
    }


def beam_search(
    language: Language,
    limit: int,
    special,
    beam_size: int,
    alpha: float,
    rules: Rules = Rules(),
    bonus: Bonus | None = None,
    early_stopping: bool | str = True,
) -> list[Hypothesis]:
    """Beam search by its definition, without a bound: a loop over hypotheses.

    `sorted` is stable, so equal scores keep the order that the definition gives them.

    Returns:
        the finished hypotheses, best first.
    """

    def could_have(hypothesis: tuple[tuple[int, ...], float], length: int) -> float:
        return hypothesis[1] / ((5 + (length if early_stopping is False else limit)) / 6) ** alpha

    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[Hypothesis] = []
    for length in range(1, limit + 1):
        extensions = [
            ((*ids, token), total + log_p)
            for ids, total in live
            for token, log_p in next_tokens(language, ids, limit, special, rules).items()
        ]
        ranked = sorted(extensions, key=lambda extension: -extension[1])
        ending, others = [], []
        for rank, (ids, total) in enumerate(ranked):
            if length < limit and ids[-1] != special.end:
                others.append((ids, total))
            elif rank < beam_size:
                ending.append(scored(ids, total, alpha, bonus))
        finished = sorted(finished + ending, key=lambda hypothesis: -hypothesis.score)[:beam_size]
        live = others[:beam_size]
        if not live or (
            len(finished) == beam_size
            and (early_stopping is True or finished[-1].score >= could_have(live[0], length))
        ):
            break
    return finished


def greedy(
    language: Language, limit: int, special, alpha: float, rules: Rules = Rules()
) -> Hypothesis | None:
    """The likeliest token at each step; None when no token is allowed."""
    ids: tuple[int, ...] = ()
    total = 0.0
    while len(ids) < limit and special.end not in ids:
        allowed = next_tokens(language, ids, limit, special, rules)
        if not allowed:
            return None
        token = max(allowed, key=allowed.__getitem__)
        ids, total = (*ids, token), total + allowed[token]
    return scored(ids, total, alpha)


def sampling_distribution(
    allowed: dict[int, float], temperature: float, top_k: int, top_p: float
) -> dict[int, float]:
    """The probability of each token that can be drawn.

    After temperature and `top_k`, the smallest set of the likeliest tokens whose probabilities
    reach `top_p` (Holtzman et al. 2020, section 3).

    Args:
        allowed: log-probabilities of the allowed tokens; see `next_tokens`.
    """
    ranked = sorted(allowed, key=lambda token: -allowed[token])
    ranked = ranked[: top_k or len(ranked)]
    weights = np.exp(log_softmax([allowed[token] / temperature for token in ranked]))
    kept = 1
    while kept < len(ranked) and weights[:kept].sum() < top_p:
        kept += 1
    weights = weights[:kept] / weights[:kept].sum()
    return dict(zip(ranked[:kept], weights.tolist(), strict=True))


def arrays(found):
    """A tuple of tensors, such as `Hypotheses`, as NumPy arrays."""
    return type(found)(*map(ops.convert_to_numpy, found))


def hypotheses_of(found, row: int) -> list[Hypothesis]:
    """The hypotheses of one sentence of a batch."""
    return [
        Hypothesis(tuple(ids[:length].tolist()), float(log_p), float(score))
        for ids, length, log_p, score in zip(*(field[row] for field in found), strict=True)
        if length
    ]


def assert_found(found, row: int, expected: list[Hypothesis]) -> None:
    """Asserts that the search found exactly these hypotheses for a sentence, in this order."""
    actual = hypotheses_of(found, row)
    assert [hypothesis.ids for hypothesis in actual] == [hypothesis.ids for hypothesis in expected]
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-5, atol=1e-5)


class PrefixTables:
    """Languages whose logits depend on the whole prefix, as one step function.

    The state per hypothesis is the prefix, and the state per sentence is its language and the
    number of steps. A search that mixes up the rows of either gets the logits of another prefix
    or language, and so finds other hypotheses.

    Args:
        tables: float32 array (R, P, V): logits by language and prefix. The row of a prefix is
            Σ token · V^position modulo P; it is unique when P is V^L.
        length: the largest number of tokens of a prefix with the start token, L.
    """

    def __init__(self, tables: np.ndarray, length: int):
        self.tables = tables
        self.length = length
        self.vocabulary_size = tables.shape[-1]

    @classmethod
    def random(cls, seed: int, languages: int, vocabulary_size: int, length: int):
        shape = (languages, 211, vocabulary_size)
        tables = np.random.default_rng(seed).normal(0.0, 2.0, shape)
        return cls(tables.astype("float32"), length)

    def language(self, number: int, special) -> Language:
        @functools.cache
        def next_logits(ids: tuple[int, ...]) -> np.ndarray:
            return self.tables[number, self._code(ids, special) % self.tables.shape[1]]

        return next_logits

    def _code(self, ids: tuple[int, ...], special) -> int:
        prefix = (special.start, *ids)
        return sum(token * self.vocabulary_size**n for n, token in enumerate(prefix))

    def state(self, languages, beam_size: int) -> StepState:
        """The first state for one sentence per given language."""
        languages = ops.convert_to_tensor(languages, "int32")  # (B,)
        batch = ops.shape(languages)[0]
        return StepState(
            per_hypothesis=ops.zeros((batch, beam_size, self.length), "int32"),
            per_sentence={"language": languages, "steps": ops.zeros((batch,), "int32")},
        )

    def step(self, ids, state: StepState, index):
        """A `StepFunction`."""
        steps = state.per_sentence["steps"]
        here = ops.equal(ops.arange(self.length, dtype="int32"), steps[:, None])  # (B, L)
        prefix = ops.where(here[:, None], ids[..., None], state.per_hypothesis)  # (B, W, L)
        flat = ops.reshape(ops.convert_to_tensor(self.tables), (-1, self.vocabulary_size))
        rows = self._codes(prefix) % self.tables.shape[1]
        rows = state.per_sentence["language"][:, None] * self.tables.shape[1] + rows  # (B, W)
        per_sentence = state.per_sentence | {"steps": steps + 1}
        return ops.take(flat, rows, axis=0), StepState(prefix, per_sentence)

    def _codes(self, prefix):
        factors = self.vocabulary_size ** np.arange(self.length, dtype="int32")
        return ops.sum(prefix * factors, axis=-1)  # (B, W)

    def bonus(self, state: StepState):
        """A number from -1.25 to 0 for each hypothesis, which depends on its tokens, (B, W)."""
        return ops.cast(self._codes(state.per_hypothesis) % 11, "float32") / -8.0

    def bonus_of(self, special) -> Bonus:
        """`bonus` for one hypothesis."""
        return lambda ids: -(self._code(ids, special) % 11) / 8
