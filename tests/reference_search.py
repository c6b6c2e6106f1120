"""Oracles for search: plain NumPy over lists of hypotheses, one sentence at a time.

A "language" here is a function from the tokens chosen so far to the logits of the next one.
`PrefixTables` holds many random languages, as such functions and as the one step function that
a search takes, so that a whole batch of random cases is searched in one call.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from keras import ops

Language = Callable[[tuple[int, ...]], np.ndarray]  # tokens chosen so far -> logits (V,)


class Hypothesis(NamedTuple):
    ids: tuple[int, ...]
    log_probability: float
    score: float


def log_softmax(logits) -> np.ndarray:
    """In float64: x - max - ln Σ exp(x - max)."""
    shifted = np.asarray(logits, np.float64) - np.max(logits)
    return shifted - np.log(np.exp(shifted).sum())


def log_probability(language: Language, ids) -> float:
    """Σ ln p(token | tokens before it), re-read from the language token by token."""
    return sum(log_softmax(language(tuple(ids[:n])))[token] for n, token in enumerate(ids))


def scored(ids, log_p: float, alpha: float) -> Hypothesis:
    """With the length penalty ((5 + length) / 6)^alpha, the end token counted."""
    return Hypothesis(tuple(ids), float(log_p), float(log_p / ((5 + len(ids)) / 6) ** alpha))


def all_sequences(vocabulary_size: int, limit: int, special) -> Iterator[tuple[int, ...]]:
    """Every sequence that ends with the end token, or has `limit` tokens and none."""
    ordinary = [i for i in range(vocabulary_size) if i not in special]
    for length in range(limit):
        for tokens in itertools.product(ordinary, repeat=length):
            yield (*tokens, special.end)
    yield from itertools.product(ordinary, repeat=limit)


def brute_force(
    language: Language, vocabulary_size: int, limit: int, special, alpha: float
) -> list[Hypothesis]:
    """All hypotheses there are, best first."""
    every = (
        scored(ids, log_probability(language, ids), alpha)
        for ids in all_sequences(vocabulary_size, limit, special)
    )
    return sorted(every, key=lambda hypothesis: -hypothesis.score)


def beam_search(
    language: Language, limit: int, special, beam_size: int, alpha: float
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
            for token, log_p in enumerate(log_softmax(language(ids)))
            if token not in (special.pad, special.start)
        ]
        ranked = sorted(extensions, key=lambda extension: -extension[1])
        ending, others = [], []
        for rank, (ids, total) in enumerate(ranked):
            if length < limit and ids[-1] != special.end:
                others.append((ids, total))
            elif rank < beam_size:
                ending.append(scored(ids, total, alpha))
        finished = sorted(finished + ending, key=lambda hypothesis: -hypothesis.score)[:beam_size]
        live = others[:beam_size]
        if len(finished) == beam_size or not live:
            break
    return finished


def greedy(language: Language, limit: int, special, alpha: float) -> Hypothesis:
    """The likeliest token, again and again."""
    ids: tuple[int, ...] = ()
    while len(ids) < limit and special.end not in ids:
        log_p = log_softmax(language(ids))
        log_p[[special.pad, special.start]] = -np.inf
        ids = (*ids, int(np.argmax(log_p)))
    return scored(ids, log_probability(language, ids), alpha)


class PrefixTables:
    """Languages whose next logits depend on the whole prefix, as one step function.

    The step function keeps the prefix in its state. A state row that does not follow its
    hypothesis therefore gives another prefix's logits, and one that strays to another sentence
    gives another language's.

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
        def next_logits(ids: tuple[int, ...]) -> np.ndarray:
            prefix = (special.start, *ids)
            code = sum(token * self.vocabulary_size**n for n, token in enumerate(prefix))
            return self.tables[number, code % self.tables.shape[1]]

        return next_logits

    def state(self, languages, beam_size: int):
        """First state for sentences in these languages: leaves (B, W) and (B, W, L)."""
        rows = np.repeat(np.asarray(languages, "int32")[:, None], beam_size, axis=1)
        return {
            "language": ops.convert_to_tensor(rows),
            "prefix": ops.zeros((*rows.shape, self.length), "int32"),
        }

    def step(self, ids, state, index):
        here = ops.equal(ops.arange(self.length, dtype="int32"), index)  # (L,)
        prefix = ops.where(here, ids[..., None], state["prefix"])  # (B, W, L)
        places = self.vocabulary_size ** np.arange(self.length, dtype="int32")
        code = ops.sum(prefix * places, axis=-1) % self.tables.shape[1]  # (B, W)
        flat = ops.reshape(ops.convert_to_tensor(self.tables), (-1, self.vocabulary_size))
        logits = ops.take(flat, state["language"] * self.tables.shape[1] + code, axis=0)
        return logits, {"language": state["language"], "prefix": prefix}
