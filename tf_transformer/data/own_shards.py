"""The shards of one of several workers, which reads no others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tf_transformer.data.mixture import Mixture
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import TokenExamples


@dataclass(eq=False)
class OwnShards:
    """Each n-th shard of a complete store, which `BatchSampler` reads like a store.

    Args:
        store: the store that all workers share. Its epochs may not differ.
        worker: the number of this worker, from 0.
        workers: the number of workers, at most that of the shards.

    Example:
        >>> from tf_transformer.data.tokens import IdRows
        >>> shards = [TokenExamples({"source": IdRows.from_lists([[n, 2]])}) for n in (5, 6, 7)]
        >>> own = OwnShards(TokenStore.of(*shards), worker=1, workers=2)
        >>> [own.shard(number)["source"].ids.tolist() for number in range(own.num_shards())]
        [[6, 2]]
    """

    store: TokenStore | Mixture
    worker: int
    workers: int

    epochs_differ = False
    is_complete = True
    whole_pass = 1
    stages: Sequence[int] = (0,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of an example's rows of ids."""
        return self.store.names

    def num_shards(self) -> int:
        """Number of shards of this worker."""
        return len(range(self.worker, self.store.num_shards(), self.workers))

    def has_shard(self, number: int) -> bool:
        """Whether shard `number` of this worker exists."""
        return number < self.num_shards()

    def shard(self, number: int) -> TokenExamples:
        """The examples of shard `number` of this worker."""
        return self.store.shard(self._place(number))

    def draws(self, number: int, epoch: int) -> np.ndarray | None:
        """How often an epoch has each example of a shard."""
        return self.store.draws(self._place(number), epoch)

    def longest(self, name: str) -> int:
        """Most ids in a row of a name, in the shards of this worker."""
        shards = map(self.shard, range(self.num_shards()))
        return max(int(shard[name].lengths.max()) for shard in shards)

    def _place(self, number: int) -> int:
        return self.worker + number * self.workers
