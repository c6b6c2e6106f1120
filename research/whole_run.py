"""Where the time of a whole training run goes, from the start of the command to its end.

    python -m research.whole_run --file research/configs/multi30k_quick.yaml \
        --options '{"train.steps": 1028}'

The parts exclude each other. Updates contain their input: a batch that is not ready when an update
starts makes that update longer. An update is traced once for each signature of its batch.
"""

import os
import pydoc
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import usage_of
from tf_transformer.commands import command_line

UPDATES, REST = "updates, with their input", "start and end of the program"
TRAINING = "tf_transformer.training"
PARTS = {  # functions of each part
    UPDATES: f"{TRAINING}.trainer._Trainer._train",
    "traces of an update": f"{TRAINING}.update.Updater._update",
    "text, tokenizer and ids": f"{TRAINING}.trainer.prepare",
    "validation loss": f"{TRAINING}.validation.Validation.losses",
    "translations of the validation set, and their score": (
        f"{TRAINING}.validation.Validation.scores"
    ),
    "checkpoints": f"{TRAINING}.checkpoint.Checkpoints._save",
}


def main(file: str, options: dict[str, Any] | None = None, output: str = "") -> None:
    """Prints the calls and seconds of each part, and its share of the time.

    Args:
        file: a configuration of train.py.
        options: options of train.py by name, like train.steps.
        output: result file to write, for example research/results/whole_run.json.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = ["--config", os.path.abspath(file), "--run_dir", f"{folder}/run"]
        for name, value in (options or {}).items():
            words += [f"--{name}", str(value)]
        parts, usage = usage_of(lambda: call("research.whole_run:train", words=words))
    parts[REST] = [1, usage.seconds - sum(seconds for _, seconds in parts.values())]
    rows = [
        {
            "part": part,
            "calls": calls,
            "seconds": round(seconds, 1),
            "share": round(seconds / usage.seconds, 3),
        }
        for part, (calls, seconds) in sorted(parts.items(), key=lambda item: -item[1][1])
    ]
    print(of_rows(rows, left=1))
    summary = {
        "seconds": round(usage.seconds),
        "minor_faults": usage.minor_faults,
        "system_seconds": round(usage.system_seconds, 1),
    }
    results.save(output, rows, ("tensorflow", "keras"), summary=summary)


def train(words: list[str]) -> dict[str, list[float]]:
    """The calls and the seconds of each part of a training run; for a process of its own."""
    from tf_transformer.commands import train as command

    parts = timed(PARTS)
    command_line.run(command.main, words)
    return parts


def timed(parts: dict[str, str]) -> dict[str, list[float]]:
    """Times functions from now on; the time of one that another calls is not the caller's.

    Args:
        parts: dotted names of functions or methods.

    Returns:
        number of calls and seconds of each part, which grow with each call.
    """
    totals: dict[str, list[float]] = {part: [0, 0.0] for part in parts}
    open_calls: list[float] = []  # seconds of the calls within each call that has not ended

    def wrapped(part: str, function: Callable) -> Callable:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            open_calls.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - start
                totals[part][0] += 1
                totals[part][1] += elapsed - open_calls.pop()
                if open_calls:
                    open_calls[-1] += elapsed

        return run

    for part, place in parts.items():
        owner, _, name = place.rpartition(".")
        found = _object(owner)
        setattr(found, name, wrapped(part, getattr(found, name)))
    return totals


def _object(place: str) -> Any:
    """The module or class of a dotted name."""
    found = pydoc.locate(place)
    if found is None:
        raise RuntimeError(f"{place} is not there.")
    return found


if __name__ == "__main__":
    command_line.run(main)
