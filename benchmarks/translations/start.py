"""Measures how long a new process takes to translate, and its memory.

    python -m benchmarks.translations.start --run_dir pretrained/tatoeba-en-de --source test.en \
        --output benchmarks/results/start.json

`translate.py` translates the whole text. The two ways to load an export in Python answer one
sentence: a session, as TensorFlow Serving does, and `SavedTranslator`.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line

COMMAND = [sys.executable, "-m", "tf_transformer.commands.main"]
SESSION = [sys.executable, str(results.ROOT / "export" / "run_in_session.py")]
SAVED_TRANSLATOR = """
import sys
from tf_transformer.machine.imports import import_tensorflow

import_tensorflow()
from tf_transformer.inference.saved_translator import SavedTranslator

print(SavedTranslator(sys.argv[1])(sys.stdin.read().splitlines())[0].text)
"""


def main(run_dir: str, source: str, lines: int = 1000, rounds: int = 3, output: str = "") -> None:
    """Prints the median seconds until the end of a process, and its peak memory.

    Args:
        run_dir: a trained run of translation.
        source: file of sentences.
        lines: number of lines of the text from the start of the file.
        rounds: number of processes of each kind.
        output: result file to write, like benchmarks/results/start.json.
    """
    at_least_one(lines=lines, rounds=rounds)
    text = first_lines(source, lines)
    with tempfile.TemporaryDirectory() as folder:
        export = f"{folder}/1"
        options = ["--run_dir", run_dir, "--to", export]
        subprocess.run([*COMMAND, "export", *options], check=True, stdout=subprocess.DEVNULL)
        works = {
            "translate.py": ([*COMMAND, "translate", "--run_dir", run_dir], text),
            "export, session": ([*SESSION, export], text[:1]),
            "export, SavedTranslator": ([sys.executable, "-c", SAVED_TRANSLATOR, export], text[:1]),
        }
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, (program, given) in works.items():
                measured[name].append(seconds_and_megabytes(program, given))
    rows: list[dict[str, Any]] = [
        {
            "process": name,
            "sentences": len(works[name][1]),
            "seconds": round(statistics.median(seconds for seconds, _ in runs), 2),
            "peak_mb": round(statistics.median(megabytes for _, megabytes in runs)),
        }
        for name, runs in measured.items()
    ]
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"), summary={"rounds": rounds})


def seconds_and_megabytes(program: Sequence[str], text: Sequence[str]) -> tuple[float, float]:
    """The seconds of a process that reads lines of text, and its peak memory in MiB."""
    with tempfile.TemporaryFile() as lines:
        lines.write("".join(f"{line}\n" for line in text).encode())
        lines.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(
            program, stdin=lines, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{json.dumps(list(program))} ended with {process.returncode}.")
    return seconds, usage.ru_maxrss / 2**10


if __name__ == "__main__":
    command_line.run(main)
