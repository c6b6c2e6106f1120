"""Several corpora as one text of a training: how often each example is seen."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import TokenExamples


@dataclass(frozen=True, eq=False)
class Component:
    """One corpus of mixtures.

    Attributes:
        weight: how often an epoch has each example.
    """

    name: str
    store: TokenStore
    weight: float = 1.0

    @functools.cached_property
    def sizes(self) -> list[int]:
        """The number of examples in each shard. Waits until all are tokenised."""
        return [len(self.store.shard(number)) for number in range(self.store.num_shards())]

    @functools.cached_property
    def distinct(self) -> int:
        """The number of distinct examples."""
        hashes = [_hashes(self.store.shard(number)) for number in range(len(self.sizes))]
        return len(np.unique(np.concatenate(hashes)))


class Exposure(NamedTuple):
    """How often a training has seen a corpus."""

    name: str
    weight: float
    pairs: int
    distinct: int  # pairs, by their ids
    seen: float  # pairs, with repetitions

    @property
    def per_pair(self) -> float:
        """How often each distinct pair was seen, on average."""
        return self.seen / self.distinct


@dataclass(eq=False)
class Mixture:
    """The token stores of several corpora as one store, which `BatchSampler` reads.

    Each shard has an equal part of each corpus, so that all batches of a training come from all
    corpora. An epoch has each example of a corpus `weight` times. With a fraction, each epoch has
    other examples. After any number of epochs, two examples of a corpus differ by at most one draw.
    The draws depend on seed, shard and epoch only.

    Args:
        components: the corpora. Their stores may be unfinished; the methods wait for them.
        shard_examples: largest number of examples in a shard.
        seed: seed of the draws.
        temperature: raises the weights of small corpora. With n examples, and m in the largest
            corpus, a weight is multiplied by (m/n)^(1 - 1/temperature), so that the corpora have
            shares of n^(1/temperature) (Arivazhagan et al. 2019). 1: no change.
    """

    components: Sequence[Component]
    shard_examples: int
    seed: int
    temperature: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of an example's rows of ids."""
        return self.components[0].store.names

    @property
    def is_complete(self) -> bool:
        """Whether the stores of all corpora are complete."""
        return all(component.store.is_complete for component in self.components)

    @property
    def epochs_differ(self) -> bool:
        """Whether epochs have different examples."""
        return any(weight % 1 for weight in self.weights)

    @functools.cached_property
    def _pairs(self) -> list[int]:
        """The number of examples of each corpus."""
        return [sum(component.sizes) for component in self.components]

    @functools.cached_property
    def weights(self) -> list[float]:
        """How often an epoch has each example of each corpus."""
        power, most = 1 - 1 / self.temperature, max(self._pairs)
        return [
            component.weight * (most / count) ** power
            for component, count in zip(self.components, self._pairs, strict=True)
        ]

    @property
    def whole_pass(self) -> int:
        """The number of epochs after which every example has been seen."""
        return math.ceil(1 / min(1.0, *self.weights))

    def num_shards(self) -> int:
        """Number of shards. Waits until all examples are tokenised."""
        return math.ceil(sum(self._pairs) / self.shard_examples)

    def has_shard(self, number: int) -> bool:
        """Whether shard `number` exists."""
        return number < self.num_shards()

    def _bounds(self, place: int, shard: int) -> tuple[int, int]:
        """The examples of a corpus that are in a shard: the first one, and the one after them."""
        count, shards = self._pairs[place], self.num_shards()
        return count * shard // shards, count * (shard + 1) // shards

    def shard(self, number: int) -> TokenExamples:
        """The examples of a shard, one corpus after another."""
        parts = (
            part
            for place in range(len(self.components))
            for part in self._examples(place, *self._bounds(place, number))
        )
        return TokenExamples.concatenated(list(parts))

    def _examples(self, place: int, start: int, stop: int) -> Iterator[TokenExamples]:
        """The examples of a corpus from number `start` on, before `stop`."""
        store, begin = self.components[place].store, 0
        for shard, size in enumerate(self.components[place].sizes):
            first, last = max(start - begin, 0), min(stop - begin, size)
            if first < last:
                yield store.shard(shard).taken(np.arange(first, last))
            begin += size

    def draws(self, number: int, epoch: int) -> np.ndarray:
        """How often an epoch has each example of a shard: int array (N,)."""
        places = range(len(self.components))
        return np.concatenate([self._draws(place, number, epoch) for place in places])

    def _draws(self, place: int, shard: int, epoch: int) -> np.ndarray:
        """Systematic sampling: example i is drawn where e · weight + phase(i) passes an integer."""
        start, stop = self._bounds(place, shard)
        whole, fraction = divmod(self.weights[place], 1)
        rng = np.random.default_rng((self.seed, shard, place, 7))
        phases = (rng.permutation(stop - start) + rng.random()) / max(1, stop - start)
        passed = np.floor((epoch + 1) * fraction + phases) - np.floor(epoch * fraction + phases)
        return (whole + passed).astype(int)

    def longest(self, name: str) -> int:
        """Most ids in a row of a name."""
        return max(component.store.longest(name) for component in self.components)

    def exposure(self, epochs: float) -> list[Exposure]:
        """How often so many epochs, maybe with a fraction, see each corpus."""
        return [
            Exposure(part.name, weight, pairs, part.distinct, epochs * weight * pairs)
            for part, weight, pairs in zip(self.components, self.weights, self._pairs, strict=True)
        ]


def _hashes(examples: TokenExamples) -> np.ndarray:
    """A hash of the ids of each example, equal for equal ids in all shards: uint64 array (N,)."""
    total = np.zeros(len(examples), np.uint64)
    for side, rows in enumerate(examples.counted.values()):
        ids = np.asarray(rows.ids)
        starts = np.cumsum(rows.lengths) - rows.lengths
        places = np.arange(len(ids)) - np.repeat(starts, rows.lengths)
        of_id, of_place = (
            np.random.default_rng((side, kind)).integers(2**64, size=size, dtype=np.uint64)
            for kind, size in enumerate((int(ids.max()) + 1, int(rows.lengths.max())))
        )
        total += np.add.reduceat(of_id[ids] * (of_place | np.uint64(1))[places], starts)
    return total
