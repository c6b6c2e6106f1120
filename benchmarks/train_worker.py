"""Trains one contender of one shape in a process of its own; train.py starts it.

python benchmarks/train_worker.py CONTENDER SHAPE PASSES
"""

import json
import sys
import time

from train_contenders import CONTENDERS
from train_workload import WORKS, Task, check_losses, check_parameters
from worker import MARK, function_at

# The first traces and compiles; the second does what is put off until something has run.
_WARM_UP_PASSES = 2


def main(name: str, shape: str, passes: str) -> None:
    """Times passes over the batches, and prints what was found once it is checked."""
    contender, work = CONTENDERS[name], WORKS[shape]
    task = function_at(contender.task)(work, **contender.task_options)
    check_parameters(task.parameters, work.shape)
    seconds, losses = time_passes(task, int(passes))
    check_losses(losses, work.shape.vocabulary_size)
    measured = {"seconds": seconds, "losses": losses, "parameters": task.parameters}
    print(MARK + json.dumps(measured), flush=True)


def time_passes(task: Task, passes: int) -> tuple[list[float], list[float]]:
    """Seconds of timed passes, and losses of all, the warm-up's among them."""
    losses = [task.train() for _ in range(_WARM_UP_PASSES)]
    seconds: list[float] = []
    for _ in range(passes):
        start = time.perf_counter()
        losses.append(task.train())
        seconds.append(time.perf_counter() - start)
    return seconds, losses


if __name__ == "__main__":
    main(*sys.argv[1:])
