"""BLEU with each value of each choice that a long training run measures for itself.

    python -m research.forced_choices --file research/configs/multi30k_rotary.yaml \
        --options '{"train.steps": 771}' --runs runs/forced_choices --source t.en --reference t.de

The choices: compiled by XLA or not, one or two micro-batches, tuned or plain kernels. Each training
run differs from the first one in one choice. Micro-batches draw dropout of their own, and XLA and
the plain kernels other random numbers, so BLEU differs as between two seeds. The same command
continues training runs that were interrupted.
"""

import os
import pathlib
import subprocess
import sys
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from research.equal_budgets import score
from tf_transformer.commands import command_line

FIRST = {"jit_compile": False, "micro_batches": 2, "kernels": "tuned"}
CHOICES: dict[str, dict[str, Any]] = {
    "not compiled, 2 micro-batches, tuned kernels": FIRST,
    "compiled by XLA": FIRST | {"jit_compile": True},
    "1 micro-batch": FIRST | {"micro_batches": 1},
    "plain kernels": FIRST | {"kernels": "plain"},
}


def main(
    file: str,
    runs: str,
    source: str,
    reference: str,
    options: dict[str, Any] | None = None,
    output: str = "",
) -> None:
    """Prints BLEU of each choice.

    Args:
        file: a configuration of train.py.
        runs: folder for the runs, one for each choice.
        source: file of test sentences.
        reference: file of their translations.
        options: options of train.py by name, like train.steps.
        output: result file to write, for example research/results/forced_choices.json.
    """
    text = pathlib.Path(source).read_bytes()
    references = first_lines(reference, 10**9)
    rows = []
    for place, (name, choice) in enumerate(CHOICES.items()):
        run = str(pathlib.Path(runs) / str(place))
        forced = {f"train.{key}": choice[key] for key in ("jit_compile", "micro_batches")}
        words = [f"--{key}={value}" for key, value in {**(options or {}), **forced}.items()]
        command(choice, "train.py", "--config", file, "--run_dir", run, *words)
        translated = command(choice, "translate.py", "--run_dir", run, text=text).decode()
        rows.append({"choice": name} | score(translated.split("\n")[:-1], references))
        print(of_rows(rows[-1:], left=1), flush=True)
    summary = {"sentences": len(references), "options": options}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def command(choice: dict[str, Any], *words: str, text: bytes = b"") -> bytes:
    """The output of a command of this project with the kernels of a choice."""
    environment = {**os.environ, "TF_TRANSFORMER_KERNELS": choice["kernels"]}
    program = [sys.executable, *words]
    done = subprocess.run(program, env=environment, input=text, stdout=subprocess.PIPE, check=True)
    return done.stdout


if __name__ == "__main__":
    command_line.run(main)
