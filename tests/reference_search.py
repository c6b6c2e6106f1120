"""Oracles for search: plain NumPy over lists of hypotheses, one sentence at a time.

A "language" here is a function from the tokens chosen so far to the logits of the next one.
`PrefixTables` holds many random languages, as such functions and as the one step function that
a search takes, so that a whole batch of random cases is searched in one call.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from keras import ops

from tf_transformer.decoding import StepState

Language = Callable[[tuple[int, ...]], np.ndarray]  # tokens chosen so far -> logits (V,)
Bonus = Callable[[tuple[int, ...]], float]  # tokens before the last one -> added to the score


class Hypothesis(NamedTuple):
    ids: tuple[int, ...]
    log_probability: float
    score: float


class Rules(NamedTuple):
    """What one sentence's hypotheses must obey: `Constraints` by hand."""

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
    """Σ ln p(token | tokens before it), re-read from the language token by token.

    A token that came before counts `repetition_penalty` times, unless the prefix asks for it.
    """
    total = 0.0
    for n, token in enumerate(ids):
        repeated = n >= len(rules.prefix) and token in ids[:n]
        factor = rules.repetition_penalty if repeated else 1.0
        total += factor * log_softmax(language(tuple(ids[:n])))[token]
    return total


def scored(ids, log_p: float, alpha: float, bonus: Bonus | None = None) -> Hypothesis:
    """With the length penalty ((5 + length) / 6)^alpha, the end token counted."""
    score = log_p / ((5 + len(ids)) / 6) ** alpha
    if bonus is not None:
        score += bonus(tuple(ids[:-1]))
    return Hypothesis(tuple(ids), float(log_p), float(score))


def all_sequences(vocabulary_size: int, limit: int, special) -> Iterator[tuple[int, ...]]:
    """Every sequence that ends with the end token, or has `limit` tokens and none."""
    ordinary = [i for i in range(vocabulary_size) if i not in special]
    for length in range(limit):
        for tokens in itertools.product(ordinary, repeat=length):
            yield (*tokens, special.end)
    yield from itertools.product(ordinary, repeat=limit)


def repeats(ids: tuple[int, ...], size: int) -> list[int]:
    """Positions at which an n-gram ends that has ended before, by the definition."""
    grams = [ids[n - size + 1 : n + 1] for n in range(size - 1, len(ids))]
    return [size - 1 + n for n, gram in enumerate(grams) if gram in grams[:n]]


def obeys(ids: tuple[int, ...], limit: int, special, rules: Rules) -> bool:
    """Whether a whole hypothesis keeps the rules, which hold for what follows the prefix."""
    given = min(len(rules.prefix), limit)
    if ids[:given] != rules.prefix[:given]:
        return False
    if len(ids) == given:
        return True
    if special.end in ids and len(ids) < min(rules.min_length, limit):
        return False
    if rules.no_repeat_ngram_size and any(
        n >= given for n in repeats(ids, rules.no_repeat_ngram_size)
    ):
        return False
    return not set(ids[given:]) & set(rules.excluded)


def brute_force(
    language: Language,
    vocabulary_size: int,
    limit: int,
    special,
    alpha: float,
    rules: Rules = Rules(),
) -> list[Hypothesis]:
    """All hypotheses that keep the rules, best first."""
    every = (
        scored(ids, log_probability(language, ids, rules), alpha)
        for ids in all_sequences(vocabulary_size, limit, special)
        if obeys(ids, limit, special, rules)
    )
    return sorted(every, key=lambda hypothesis: -hypothesis.score)


def next_tokens(
    language: Language, ids: tuple[int, ...], limit: int, special, rules: Rules
) -> dict[int, float]:
    """Tokens that may follow and what each adds to the log-probability, in the order of ids."""
    log_p = log_softmax(language(ids))
    length = len(ids) + 1
    if length <= len(rules.prefix):
        token = rules.prefix[length - 1]
        return {token: log_p[token]}
    out = {special.pad, special.start, *rules.excluded}
    if length < min(rules.min_length, limit):
        out.add(special.end)
    size = rules.no_repeat_ngram_size
    return {
        token: value * (rules.repetition_penalty if token in ids else 1.0)
        for token, value in enumerate(log_p)
        if token not in out and not (size and length - 1 in repeats((*ids, token), size))
    }


def beam_search(
    language: Language,
    limit: int,
    special,
    beam_size: int,
    alpha: float,
    rules: Rules = Rules(),
    bonus: Bonus | None = None,
) -> list[Hypothesis]:
    """The definition, as a loop over hypotheses; without early stopping, best first.

    `sorted` is stable, which settles equal scores as the definition does.
    """
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
        if len(finished) == beam_size or not live:
            break
    return finished


def greedy(
    language: Language, limit: int, special, alpha: float, rules: Rules = Rules()
) -> Hypothesis | None:
    """The likeliest token, again and again; nothing where no token is left."""
    ids: tuple[int, ...] = ()
    total = 0.0
    while len(ids) < limit and special.end not in ids:
        following = next_tokens(language, ids, limit, special, rules)
        if not following:
            return None
        token = max(following, key=following.__getitem__)
        ids, total = (*ids, token), total + following[token]
    return scored(ids, total, alpha)


def sampled_from(
    following: dict[int, float], temperature: float, top_k: int, top_p: float
) -> dict[int, float]:
    """The probability of each token, given what may follow: all that is not here has none.

    Holtzman et al. 2020, section 3: the smallest set of the likeliest tokens that reaches
    `top_p`; after temperature and the choice of `top_k`.
    """
    ranked = sorted(following, key=lambda token: -following[token])
    ranked = ranked[: top_k or len(ranked)]
    weights = np.exp(log_softmax([following[token] / temperature for token in ranked]))
    kept = 1
    while kept < len(ranked) and weights[:kept].sum() < top_p:
        kept += 1
    weights = weights[:kept] / weights[:kept].sum()
    return dict(zip(ranked[:kept], weights.tolist(), strict=True))


def arrays(found):
    """What a search found as NumPy arrays."""
    return type(found)(*map(ops.convert_to_numpy, found))


def hypotheses_of(found, row: int) -> list[Hypothesis]:
    """The hypotheses that were found for a sentence, out of the arrays of a batch."""
    return [
        Hypothesis(tuple(ids[:length].tolist()), float(log_p), float(score))
        for ids, length, log_p, score in zip(*(field[row] for field in found), strict=True)
        if length
    ]


def assert_found(found, row: int, expected: list[Hypothesis]) -> None:
    """That the search found these for the sentence, in this order, and no others."""
    got = hypotheses_of(found, row)
    assert [hypothesis.ids for hypothesis in got] == [hypothesis.ids for hypothesis in expected]
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours[1:], theirs[1:], rtol=1e-5, atol=1e-5)


class PrefixTables:
    """Languages whose next logits depend on the whole prefix, as one step function.

    The step function keeps the prefix in its own state. A state row that does not follow its
    hypothesis therefore gives another prefix's logits, and one that strays to another sentence
    writes into another prefix. Which language a sentence is in, and how many steps there were,
    all its hypotheses share: were that moved or lost, nothing below would come out right.

    Args:
        tables: float32 array (R, P, V): logits by language and prefix. A prefix is looked up
            by Σ token · V^position modulo P: one of its own when P is V^L.
        length: most tokens a prefix may have, L (the start token included).
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
        """First state for sentences in these languages."""
        languages = ops.convert_to_tensor(languages, "int32")  # (B,)
        batch = ops.shape(languages)[0]
        return StepState(
            own=ops.zeros((batch, beam_size, self.length), "int32"),
            shared={"language": languages, "steps": ops.zeros((batch,), "int32")},
        )

    def step(self, ids, state: StepState, index):
        steps = state.shared["steps"]
        here = ops.equal(ops.arange(self.length, dtype="int32"), steps[:, None])  # (B, L)
        prefix = ops.where(here[:, None], ids[..., None], state.own)  # (B, W, L)
        flat = ops.reshape(ops.convert_to_tensor(self.tables), (-1, self.vocabulary_size))
        places = self._codes(prefix) % self.tables.shape[1]
        places = state.shared["language"][:, None] * self.tables.shape[1] + places  # (B, W)
        shared = state.shared | {"steps": steps + 1}
        return ops.take(flat, places, axis=0), StepState(prefix, shared)

    def _codes(self, prefix):
        places = self.vocabulary_size ** np.arange(self.length, dtype="int32")
        return ops.sum(prefix * places, axis=-1)  # (B, W)

    def bonus(self, state: StepState):
        """0 to -1.25, by the tokens of each hypothesis: what `bonus_of` is for one."""
        return ops.cast(self._codes(state.own) % 11, "float32") / -8.0

    def bonus_of(self, special) -> Bonus:
        return lambda ids: -(self._code(ids, special) % 11) / 8
