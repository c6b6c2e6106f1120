"""Trains one contender of one shape in a process of its own; train.py starts it.

python benchmarks/train_worker.py CONTENDER SHAPE

It reports once it is warm, then waits: each line that it reads asks for a pass and a report.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from train_contenders import CONTENDERS
from train_workload import WORKS, Task, check_losses, check_parameters
from worker import MARK, function_at

# The first traces and compiles; the second does what is put off until something has run.
_WARM_UP_PASSES = 2


def main(name: str, shape: str) -> None:
    """Trains passes over the batches as they are asked for; in the end losses are checked."""
    contender, work = CONTENDERS[name], WORKS[shape]
    task = function_at(contender.task)(work, **contender.task_options)
    check_parameters(task.parameters, work.shape)
    losses = []
    for report in reports(task, sys.stdin):
        losses += report["losses"]
        print(MARK + json.dumps(report), flush=True)
    check_losses(losses, work.shape.vocabulary_size)


def reports(task: Task, requests: Iterable[str]) -> Iterator[dict[str, Any]]:
    """What `Measurement` is made of: of the warm-up, then of a timed pass a request."""
    warm_up = [task.train() for _ in range(_WARM_UP_PASSES)]
    yield {"parameters": task.parameters, "losses": warm_up, "seconds": []}
    for _ in requests:
        start = time.perf_counter()
        loss = task.train()
        seconds = time.perf_counter() - start
        yield {"parameters": task.parameters, "losses": [loss], "seconds": [seconds]}


if __name__ == "__main__":
    main(*sys.argv[1:])
