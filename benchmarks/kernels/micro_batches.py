"""Updates with several numbers of micro-batches; each number has a process, in turn."""

import contextlib
import functools
from collections.abc import Callable

from benchmarks.harness.processes import Process
from benchmarks.harness.shapes import SHAPES
from benchmarks.kernels.probe import Probe, timed
from benchmarks.kernels.timing import Loop
from benchmarks.train.workload import CELLS, batches


def row(numbers: tuple[int, ...], threads: int) -> dict:
    """The row of `MAX_MICRO_BATCHES`.

    Args:
        numbers: numbers of micro-batches.
        threads: threads of each process.
    """
    with contextlib.ExitStack() as stack:
        sides = {
            str(number): functools.partial(_loop, stack.enter_context(Process()), number, threads)
            for number in numbers
        }
        size = f"update of tiny, {threads} threads"
        chosen = str(max(number for number in numbers if number <= threads))
        found = timed(Probe("MAX_MICRO_BATCHES", size, chosen, sides))
    own = ("minor_faults", "system_ms")  # of this process, which only starts further processes
    return {name: value for name, value in found.items() if name not in own}


def _loop(process: Process, number: int, threads: int) -> Loop:
    place = "benchmarks.kernels.micro_batches:update"

    def loop(count: int) -> None:
        process.call(place, micro_batches=number, threads=threads, count=count)

    return loop


def update(micro_batches: int, threads: int, count: int) -> None:
    """Makes `count` updates. Call it in a new process."""
    make_one = _updater(micro_batches, threads)
    for _ in range(count):
        make_one()


@functools.cache
def _updater(micro_batches: int, threads: int) -> Callable[[], None]:
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.threading.set_intra_op_parallelism_threads(max(1, threads // micro_batches))

    from benchmarks.train.keras_fit import repeated
    from tf_transformer.config import ModelConfig
    from tf_transformer.losses.cross_entropy import CrossEntropy
    from tf_transformer.models.transformer import Transformer
    from tf_transformer.tasks.translation import TRANSLATION
    from tf_transformer.training.update import Updater, make_optimizer

    shape, cell = SHAPES["tiny"], CELLS["tiny"]
    model = Transformer(shape.vocabulary_size, ModelConfig.preset("tiny"))
    model.build()
    optimizer, loss = make_optimizer(model, 1e-4), CrossEntropy(0.1)
    updater = Updater(TRANSLATION, model, optimizer, loss, micro_batches=micro_batches)
    made = [({"source": b.source, "target": b.labels},) for b in batches(shape, cell)]
    data = repeated(made)

    def make_one() -> None:
        updater.update(data)
        updater.read_metrics()

    return make_one
