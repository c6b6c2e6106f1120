"""Measures which execution of an update is the fastest, before a long training run on a CPU.

The fastest execution depends on the machine and the model. Each execution is timed for a few
updates with a batch of the training, in a process of its own: a process cannot change its threads,
and compiled code stays in its memory. The program of this process is this module.
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import pathlib
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

import tf_transformer
from tf_transformer import tasks
from tf_transformer.config import Config, TrainConfig
from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.shard_sampler import BatchIndices
from tf_transformer.files.writing import write_whole
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.limits import available_cores
from tf_transformer.machine.programs import run_program
from tf_transformer.run.run import Run
from tf_transformer.text.special_ids import UNK_ID
from tf_transformer.training.setup import Execution, make_updater, possible_executions
from tf_transformer.training.stages import longest, stages_of

# Floating-point operations of about 40 minutes on two cores. Measurements take 1 or 2 minutes.
LONG_TRAINING = 4e14
BATCHES_COUNTED = 1000  # for the number of shapes that XLA has to compile
TIMED_SECONDS, TIMED_UPDATES = 3.0, 3  # at least
LONGEST_TRIAL = 300  # seconds
SETTINGS = ("XLA", "TF", "ONEDNN", "MALLOC", "GLIBC", "LD_PRELOAD", "OMP")  # first letters of names

Shape = dict[str, tuple[int, int]]  # by name, rows and length of the ids in a batch


def choose_execution(run: Run, batches: BatchSampler) -> Execution:
    """The execution of a training run in one process; saved with the run.

    A resumed run keeps its execution. A short or deterministic training run takes the first
    possible execution. A long one takes the fastest. It measures executions, or uses the
    measurements of an earlier training run with the same options on this machine.
    """
    executions = possible_executions(run.config.train)
    chosen = executions[0]
    if run.folder.has_checkpoint:
        stored = run.folder.load_execution()
        chosen = next((known for known in executions if known._asdict() == stored), chosen)
    elif len(executions) > 1 and _is_long(run, batches):
        chosen = _fastest(executions, run, batches)
    run.folder.save_execution(chosen._asdict())
    return chosen


def number_of_updates(train: TrainConfig, batches: BatchSampler) -> int:
    """The number of updates of a whole training run, whose stages are as long as the first."""
    return sum(longest(stage, batches, train) for stage in stages_of(train))


def _is_long(run: Run, batches: BatchSampler) -> bool:
    """Whether the measurements are short beside the training."""
    config = run.config
    if config.train.deterministic:  # two measurements could choose differently
        return False
    model = config.model
    layers = model.encoder.num_layers + model.decoder.num_layers
    vocabulary_size = max(run.codec.sizes)
    weights = (vocabulary_size + layers * (4 * model.d_model + 2 * model.d_ff)) * model.d_model
    tokens = (
        config.data.batch_tokens
        * config.train.accumulate
        * number_of_updates(config.train, batches)
    )
    return 6 * weights * tokens > LONG_TRAINING


def _fastest(executions: Sequence[Execution], run: Run, batches: BatchSampler) -> Execution:
    """The execution with the shortest estimated time for the whole training.

    The first set of kernels is timed in all forms. Each further set is timed in the form that is
    the fastest with the first set.
    """
    shapes = [_shape(batch) for batch in itertools.islice(batches.epoch(0), BATCHES_COUNTED)]
    shape = sorted(shapes, key=lambda shape: math.prod(max(shape.values())))[len(shapes) // 2]
    updates = number_of_updates(run.config.train, batches)
    compilations = min(updates, len({tuple(shape.items()) for shape in shapes}))
    file = _cache_file(run.config, shape)
    costs = _stored_costs(file)
    totals: dict[Execution, float] = {}

    def total(execution: Execution) -> float:
        name = str(execution)
        if name not in costs:
            tqdm.write(f"measuring updates, {name} ...", file=sys.stderr)
            costs[name] = _cost(execution, run, shape)
        if not costs[name]:
            return math.inf
        first, others = costs[name]
        compiled = compilations if execution.jit_compile else 1
        totals[execution] = first * compiled + others * updates
        return totals[execution]

    form = min((x for x in executions if x.kernels == executions[0].kernels), key=total)
    chosen = min((x for x in executions if x[:2] == form[:2]), key=total)
    if file:
        with contextlib.suppress(OSError):  # a folder that cannot be written
            write_whole(file, json.dumps({name: cost for name, cost in costs.items() if cost}))
    listed = "; ".join(f"{timed} {costs[str(timed)][1]:.3g} s" for timed in totals)
    tqdm.write(
        f"an update of {'; '.join(f'{n} {b} x {t}' for n, (b, t) in shape.items())}: {listed}. "
        f"Chosen for {updates:,} updates: {chosen}; see --train.jit_compile, --train.micro_batches."
    )
    return chosen


def _shape(batch: BatchIndices) -> Shape:
    lengths = {name: rows.lengths[batch.rows] for name, rows in batch.examples.rows.items()}
    return {name: (len(rows), int(rows.max())) for name, rows in lengths.items()}


def _stored_costs(file: pathlib.Path | None) -> dict[str, Any]:
    """The costs in a file; empty if the file is missing or cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        if file and isinstance(costs := json.loads(file.read_text("utf-8")), dict):
            return costs
    return {}


def _cache_file(config: Config, shape: Shape) -> pathlib.Path | None:
    """The file with costs of this machine, model and batch shape; None without a home folder."""
    cpu = pathlib.Path("/proc/cpuinfo")
    lines = set(cpu.read_text().split("\n") if cpu.exists() else [platform.processor()])
    facts = [
        *sorted(line for line in lines if line.startswith(("model name", "flags"))),
        *(available_cores(), tf.__version__, keras.__version__, tf_transformer.__version__, shape),
        *(config.task.name, asdict(config.model), config.train.threads, config.train.accumulate),
        config.train.consistency,
        *sorted(item for item in os.environ.items() if item[0].startswith(SETTINGS)),
    ]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    try:
        folder = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    except RuntimeError:
        return None
    return pathlib.Path(folder, "tf_transformer", f"updates-{key}.json")


def _cost(execution: Execution, run: Run, shape: Shape) -> tuple[float, float] | None:
    """Seconds of the first update and of a later update; None for an execution that fails here."""
    work = {"run_dir": str(run.folder.path), "shape": shape, **execution._asdict()}
    with contextlib.suppress(RuntimeError):
        first, others = run_program(__name__, work, LONGEST_TRIAL)
        return first, others
    return None


def time_updates(run_dir: str, shape: Shape, **execution_options: Any) -> tuple[float, float]:
    """Seconds of the first and median seconds of later updates of a new model, with random ids."""
    run, execution = Run.load(run_dir), Execution(**execution_options)
    config, codec = run.config, run.codec
    execution.use_threads(config.train.threads)
    updater = make_updater(config, tasks.for_run(config), codec, execution)
    draw = np.random.default_rng(1)
    batch = {
        name: draw.integers(UNK_ID + 1, min(codec.sizes), size).astype(np.int32)
        for name, size in shape.items()
    }
    group = (batch,) * config.train.accumulate
    data = iter(tf.data.Dataset.from_tensors(group).repeat())
    seconds: list[float] = []
    while len(seconds) <= TIMED_UPDATES or sum(seconds[1:]) < TIMED_SECONDS:
        start = time.perf_counter()
        updater.update(data)
        updater.read_metrics()  # waits for the end
        seconds.append(time.perf_counter() - start)
    return seconds[0], statistics.median(seconds[1:])


if __name__ == "__main__":
    keep_freed_memory(one_heap=True)
    print(json.dumps(time_updates(**json.load(sys.stdin))))
