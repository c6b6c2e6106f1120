"""Replica batches: the rows of a batch that one replica computes."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

from tf_transformer.data.tokens import Batch
from tf_transformer.training.strategy import num_workers


@contextlib.contextmanager
def replica_batches(
    strategy: tf.distribute.Strategy,
    names: Sequence[str],
    batches: Callable[[], Iterator[Batch]],
    size: int = 1,
) -> Iterator[Iterator[tuple[Batch, ...]]]:
    """Gives each replica its rows of each batch, `size` batches at a time.

    Replica r of R gets rows r, r + R, r + 2R, …. The rows of a batch have similar lengths, so all
    replicas get about the same number of tokens. With fewer rows than replicas, some replicas get
    a row of padding, which adds nothing to the loss. The function `batches` starts an iterator over
    whole batches, the same on each worker. `names` are those of the ids in a batch.
    """
    replicas = strategy.num_replicas_in_sync
    ended = threading.Event()

    def of_this_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        count = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * count

        def of_replicas() -> Iterator[tuple[Batch, ...]]:
            same = [batches()] * size
            for group in zip(*same, strict=False):  # the next `size` batches of one iterator
                if ended.is_set():
                    return
                for replica in range(first, first + count):
                    yield tuple(rows_of_replica(batch, replica, replicas) for batch in group)

        spec = dict.fromkeys(names, tf.TensorSpec((None, None), tf.int32))
        dataset = tf.data.Dataset.from_generator(of_replicas, output_signature=(spec,) * size)
        return dataset.prefetch(4 * count)

    elements = iter(strategy.distribute_datasets_from_function(of_this_worker))
    try:
        yield elements
    finally:
        ended.set()
        if num_workers(strategy) == 1:  # several workers would have to agree on the last element
            # As long as the iterator lives, a thread of tf.data may run Python code at the exit of
            # the process. Python stops that thread, and the exit waits for it forever. After an
            # error, the traceback keeps the iterator alive. So all prefetched elements are taken.
            with contextlib.suppress(tf.errors.OpError):  # of the batches, which was raised before
                for _ in elements:
                    pass


def rows_of_replica(batch: Batch, replica: int, replicas: int) -> Batch:
    """The rows of one replica; a row of padding if the batch has no row for the replica."""
    return {
        name: ids[replica::replicas] if replica < len(ids) else ids[:1] * 0
        for name, ids in batch.items()
    }
