"""Runs the steps of a file and continues where it stopped: tf-transformer pipeline recipe.yaml."""

import sys
from collections.abc import Sequence
from datetime import timedelta

from tf_transformer.commands import command_line
from tf_transformer.commands.pipeline_file import read_steps
from tf_transformer.commands.pipeline_step import State, Step
from tf_transformer.errors import InputError
from tf_transformer.files.aligned import aligned
from tf_transformer.files.local_paths import LocalPath


def main(input: LocalPath, until: str = "", dry_run: bool = False) -> None:
    """Runs the steps of a YAML file in order, and continues where an earlier start stopped.

    A step has a name, a command and its options. It runs in a process of its own. A step whose
    outputs are complete is skipped. If its options or the content of its inputs have changed, the
    command stops with an error, and deletes nothing. All options are checked before the first step.

    Args:
        input: YAML file of the steps, like {large: {train: {run_dir: runs/large}}}. The first word
            may be the file, without --input.
        until: name of the last step that runs. Empty: all steps run.
        dry_run: print which steps are done, and run nothing.
    """
    steps = read_steps(input)
    names = [step.name for step in steps]
    if until and until not in names:
        raise InputError(f"--until {until}: expected a step of {input}: {', '.join(names)}.")
    steps = steps[: names.index(until) + 1] if until else steps
    states = plan(steps)
    if dry_run:
        print(table(steps, states))
        return
    for number, step in enumerate(steps, 1):
        if step.state() is State.DONE:
            continue
        place = f"[{number}/{len(steps)}] {step.name}"
        print(f"{place}: {step.command}, to {', '.join(step.outputs)}", file=sys.stderr)
        if status := step.run():
            print(f"{place}: stopped. The same command continues here.", file=sys.stderr)
            sys.exit(status)
        print(f"{place}: done in {_duration(step)}", file=sys.stderr)
    print(table(steps, [State.DONE] * len(steps)))


def plan(steps: Sequence[Step]) -> list[State]:
    """How far each step is, before the first of them runs; raises as `Step.state`."""
    states, pending = list[State](), list[str]()
    for step in steps:
        states.append(step.state(waits=step.reads(pending)))
        if states[-1] is not State.DONE:
            pending += step.outputs
    return states


def table(steps: Sequence[Step], states: Sequence[State]) -> str:
    """A line for each step, with its time and its scores if it is done."""
    pairs = list(zip(steps, states, strict=True))
    scores = [step.scores() if state is State.DONE else {} for step, state in pairs]
    columns = list(dict.fromkeys(name for row in scores for name in row))
    cells = [["step", "command", "state", "time", *columns]]
    for (step, state), row in zip(pairs, scores, strict=True):
        time = _duration(step) if state is State.DONE else ""
        numbers = (f"{row[name]:.2f}" if name in row else "" for name in columns)
        cells.append([step.name, step.command, state, time, *numbers])
    return "\n".join(aligned(cells, lambda column, _: column > 2))


def _duration(step: Step) -> str:
    return str(timedelta(seconds=round(step.seconds)))


if __name__ == "__main__":
    command_line.run(main)
