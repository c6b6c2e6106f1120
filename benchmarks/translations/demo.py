"""Runs `make demo`, and stores its output, scores and translations.

python -m benchmarks.translations.demo --output benchmarks/results/demo.json
"""

import json
import pathlib
import re
import subprocess
import time
from collections.abc import Sequence

from benchmarks.harness import results
from tf_transformer.commands import command_line

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = "configs/demo.yaml"


def main(seed: int | None = None, output: str = "") -> None:
    """Trains, evaluates, exports and translates by `make demo`, and prints its output.

    The folder runs/demo must not exist: `make demo` does not repeat a finished training run.

    Args:
        seed: seed of the training; null: the configured seed.
        output: result file to write, like benchmarks/results/demo.json; for another seed,
            benchmarks/results/demo_seed_2.json.
    """
    # The environment first, so that pip's output is not part of the record.
    subprocess.run(["make", ".venv/installed"], cwd=ROOT, capture_output=True, check=True)
    start = time.monotonic()
    program = ["make", "--no-print-directory", "demo"]
    if seed is not None:
        program.append(f"TRAIN_OPTIONS=--train.seed {seed}")
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds = time.monotonic() - start
    lines = readable(done.stderr, done.stdout)
    print("\n".join(lines))
    summary = scores(done.stdout, "\n".join(lines)) | {"total_seconds": round(seconds)}
    rows = translations(done.stdout, makefile=(ROOT / "Makefile").read_text("utf-8"))
    packages = ("tensorflow", "keras", "sacrebleu")
    results.save(output, rows, packages, summary=summary, printed=lines)


def readable(progress: str, printed: str) -> list[str]:
    """The lines for a reader: one line of progress, and what the commands print.

    Args:
        progress: the standard error of `make demo`.
        printed: its standard output.
    """
    states = [line for line in re.split(r"[\r\n]", progress) if "updates/s" in line]
    bar = [states[len(states) * 5 // 6].rstrip(), "..."] if states else []
    lines = [
        line
        for line in printed.splitlines()
        if line and not line.startswith((".venv/", "rm ", "printf", '{"bleu"', "update "))
    ]
    place = next((i for i, line in enumerate(lines) if line.startswith("trained ")), 0)
    return lines[:place] + bar + lines[place:]


def scores(printed: str, lines: str) -> dict[str, object]:
    """The scores that evaluate.py printed, and the size of the training."""
    (found,) = (json.loads(line) for line in printed.splitlines() if line.startswith('{"bleu"'))
    number = r"([\d,.]+)"
    updates, minutes = re.findall(rf"trained {number} updates, {number} minutes", lines)[0]
    (parameters,) = re.findall(rf"model: {number} parameters", lines)
    return found | {
        "exact_match": found["exact_match"] / 100,
        "updates": int(updates.replace(",", "")),
        "training_seconds": round(60 * float(minutes)),
        "parameters": int(parameters.replace(",", "")),
        "config": CONFIG,
    }


def translations(printed: str, makefile: str) -> Sequence[dict[str, object]]:
    """The translations from the export, each with its source text in the Makefile."""
    found = [json.loads(line) for line in printed.splitlines() if line.startswith('{"trans')]
    recipe = makefile[makefile.index("printf '%s") :]
    _format, *texts = re.findall(r"'([^']*)'", recipe)[: len(found) + 1]
    return [row | {"text": text} for row, text in zip(found, texts, strict=True)]


if __name__ == "__main__":
    command_line.run(main)
