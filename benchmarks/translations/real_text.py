"""Compares the speed of translation of a text with CTranslate2 and Hugging Face.

    python -m benchmarks.translations.real_text --run_dir runs/multi30k --source test.en \
        --reference test.de --output benchmarks/results/real_text.json

The model is a trained run. The sentences have natural lengths, so batches, padding and the ends of
searches matter. Each system has its own process with two cores, in its best setting. This project
and CTranslate2 translate two batches in parallel with one thread each. Hugging Face's `generate`
has batches of similar length. Each process stays until the end. The systems translate the text in
turn, because the speed of a machine changes within minutes.

With `--student`, a second run is measured as a SavedModel with the search of its configuration.
"""

import contextlib
import functools
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import Process, ProcessError, call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from benchmarks.translations.compare import bleu, first_lines
from benchmarks.translations.text_systems import SYSTEMS, WHOLE, Translate
from tf_transformer.commands import command_line

PACKAGES = ("tensorflow", "ctranslate2", "transformers", "torch", "sacrebleu")
_MODULE = "benchmarks.translations.real_text"
ALONE = 100  # sentences that a pass also translates one after the other
STUDENT = ("student", "student_xla")


def main(
    run_dir: str,
    source: str,
    reference: str,
    systems: str = "",
    lines: int = 10**9,
    copies: int = 3,
    beam_size: int = 4,
    rounds: int = 5,
    student: str = "",
    output: str = "",
) -> None:
    """Prints sentences per second, seconds of the first pass with start-up, memory and BLEU.

    Args:
        run_dir: a trained run of translation.
        source: file of sentences.
        reference: file of their translations.
        systems: systems to measure, with commas between them; empty: all.
        lines: number of lines from the start of the files.
        copies: number of copies of the text.
        beam_size: beam size of all searches.
        rounds: timed passes of each system after its first pass.
        student: a run that is compared with this one, such as a small model of its translations.
        output: result file to write, like benchmarks/results/real_text.json.
    """
    at_least_one(lines=lines, copies=copies, beam_size=beam_size, rounds=rounds)
    selected = chosen(systems, SYSTEMS) if systems else list(SYSTEMS)
    if not student:
        selected = [name for name in selected if name not in STUDENT]
    run_dir, source = os.path.abspath(run_dir), os.path.abspath(source)  # for other processes
    references = first_lines(reference, lines)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as processes:
        runs = {name: os.path.abspath(student if name in STUDENT else run_dir) for name in selected}
        selected = exported(runs, folder, beam_size)
        arguments = {"run_dir": run_dir, "folder": folder, "beam_size": beam_size}
        arguments |= {"source": source, "lines": lines}
        started = {name: processes.enter_context(Process()) for name in selected}
        first = first_passes(started, arguments, references)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in first}
        for _ in range(rounds):
            for name, passes in found.items():
                work = arguments | {"system": name, "copies": copies}
                passes.append(started[name].call(f"{_MODULE}:timed_pass", **work))
    if not first:
        sys.exit("no system could be measured.")
    rows = compared(
        [{"system": name} | medians(passes) | first[name] for name, passes in found.items()]
    )
    print(of_rows(rows, left=1))
    summary = {"sentences": rows[0]["sentences"], "beam": beam_size}
    summary |= {"student": student} if student else {}
    results.save(output, rows, PACKAGES, summary=summary)


def exported(runs: Mapping[str, str], folder: str, beam_size: int) -> list[str]:
    """Writes what systems read from their runs; the systems for which this succeeded."""
    written = []
    for name, run_dir in runs.items():
        search = {} if name in STUDENT else {"beam_size": beam_size, **WHOLE}
        work = {"system": name, "run_dir": run_dir, "folder": f"{folder}/{name}"}
        try:
            if SYSTEMS[name].write:
                call("benchmarks.translations.text_systems:export", **work, **search)
            written.append(name)
        except ProcessError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return written


def first_passes(
    processes: Mapping[str, Process], arguments: dict[str, Any], references: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Seconds of the first pass and BLEU of each system; names those that fail."""
    found = {}
    for name, process in processes.items():
        try:
            first = process.call(f"{_MODULE}:first_pass", system=name, **arguments)
        except ProcessError as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            continue
        found[name] = first | {"bleu": bleu(first.pop("translations"), references)}
        read = pathlib.Path(arguments["folder"], name)
        read = read if read.exists() else pathlib.Path(arguments["run_dir"])
        files = [file for file in read.rglob("*") if file.is_file()]
        found[name]["folder_mb"] = sum(file.stat().st_size for file in files) / 1e6
    return found


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number over all rounds."""
    return {field: statistics.median(numbers[field] for numbers in rounds) for field in rounds[0]}


def compared(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with rounded numbers, and with the ratio to CTranslate2's speed."""
    speeds = {row["system"]: row["sentences_per_second"] for row in rows}
    result = []
    for row in rows:
        numbers = {name: round(v, 2) for name, v in row.items() if name != "system"}
        if other := speeds.get("ctranslate2"):
            numbers["ratio_to_ctranslate2"] = round(row["sentences_per_second"] / other, 2)
        result.append({"system": row["system"]} | numbers)
    return result


def first_pass(
    system: str, run_dir: str, folder: str, beam_size: int, source: str, lines: int
) -> dict[str, Any]:
    """Seconds of start-up with the first pass over the text, and its translations."""
    text = first_lines(source, lines)
    start = time.perf_counter()
    translations = _started(system, run_dir, folder, beam_size)(text)
    return {
        "first_pass_seconds": time.perf_counter() - start,
        "translations": translations,
    }


def timed_pass(
    system: str, run_dir: str, folder: str, beam_size: int, source: str, lines: int, copies: int
) -> dict[str, Any]:
    """The numbers of a pass. Call it in the process of the first pass."""
    text = first_lines(source, lines) * copies
    translate = _started(system, run_dir, folder, beam_size)
    _, usage = usage_of(lambda: translate(text))
    _, alone = usage_of(lambda: [translate([line]) for line in text[: _alone(system)]])
    return {
        "sentences": len(text),
        "sentences_per_second": len(text) / usage.seconds,
        "alone_per_second": min(_alone(system), len(text)) / alone.seconds,
        "peak_mb": peak_megabytes(),
        "minor_faults": usage.minor_faults,
        "system_seconds": usage.system_seconds,
    }


def _alone(system: str) -> int:
    """The number of sentences that a system translates one after the other."""
    return 1 if system == "translate.py" else ALONE  # which starts a process for each


@functools.cache
def _started(system: str, run_dir: str, folder: str, beam_size: int) -> Translate:
    return SYSTEMS[system].start(run_dir, f"{folder}/{system}", beam_size)


if __name__ == "__main__":
    command_line.run(main)
