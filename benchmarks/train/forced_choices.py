"""Checks that the choices which the program measures change the speed, not the results.

    python -m benchmarks.train.forced_choices --file configs/multi30k_rotary.yaml \
        --options '{"train.steps": 771, "data.bucket_width": 24}' --runs runs/forced_choices \
        --source t.en --reference t.de

Trains once with each value of each choice: compiled by XLA or not, one or two micro-batches, tuned
or plain kernels. The random numbers of dropout differ between them, so BLEU differs as between two
seeds. For each set of kernels, the translations of one run are then compared in batches of several
kinds and with its compiled export (benchmarks.translations.invariance), and with its export
(benchmarks.translations.contract). Interrupted trainings are continued by the same command.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.equal_budgets import score
from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line

CHOICES: dict[str, dict[str, Any]] = {
    "not compiled, 2 micro-batches, tuned kernels": {},
    "compiled by XLA": {"jit_compile": True},
    "1 micro-batch": {"micro_batches": 1},
    "plain kernels": {"kernels": "plain"},
}
DEFAULTS = {"jit_compile": False, "micro_batches": 2, "kernels": "tuned"}


def main(
    file: str,
    runs: str,
    source: str,
    reference: str,
    options: dict[str, Any] | None = None,
    lines: int = 100,
    output: str = "",
) -> None:
    """Prints BLEU of each choice, and the translations that depend on batches or on the export.

    Args:
        file: a configuration of train.py.
        runs: folder for the runs, one for each choice.
        source: file of test sentences.
        reference: file of their translations.
        options: options of train.py by name, like train.steps.
        lines: sentences whose translations are compared.
        output: result file to write, for example results/forced_choices.json.
    """
    text = pathlib.Path(source).read_bytes()
    references = first_lines(reference, 10**9)
    rows = []
    for place, (name, values) in enumerate(CHOICES.items()):
        choice = DEFAULTS | values
        run = str(pathlib.Path(runs) / str(place))
        forced = {f"train.{key}": choice[key] for key in ("jit_compile", "micro_batches")}
        words = [f"--{key}={value}" for key, value in {**(options or {}), **forced}.items()]
        command(choice, "train.py", "--config", file, "--run_dir", run, *words)
        translated = command(choice, "translate.py", "--run_dir", run, text=text).decode()
        row = {"choice": name, "bleu": score(translated.split("\n")[:-1], references)["bleu"]}
        if len(rows) in (0, len(CHOICES) - 1):  # a run of each set of kernels
            row |= comparisons(choice, run, source, lines)
        rows.append(row)
        print(of_rows(rows[-1:], left=1), flush=True)
    print(of_rows(rows, left=1))
    summary = {"sentences": len(references), "compared": lines}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def comparisons(choice: dict[str, Any], run: str, source: str, lines: int) -> dict[str, int]:
    """The number of translations that depend on the batch, and that an export changes."""
    common = ["--run_dir", run, "--source", source, "--lines", str(lines)]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("invariance", "contract"):
            path = f"{folder}/{name}.json"
            command(choice, "-m", f"benchmarks.translations.{name}", *common, "--output", path)
            found[name] = results.load(path)["summary"]["different"]
    return found


def command(choice: dict[str, Any], *words: str, text: bytes = b"") -> bytes:
    """The output of a command of this project with the kernels of a choice."""
    environment = {**os.environ, "TF_TRANSFORMER_KERNELS": choice["kernels"]}
    program = [sys.executable, *words]
    done = subprocess.run(program, env=environment, input=text, stdout=subprocess.PIPE, check=True)
    return done.stdout


if __name__ == "__main__":
    command_line.run(main)
