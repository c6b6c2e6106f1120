"""Measures `tf-transformer inspect`, and the keys by which a run knows its training text.

    python -m benchmarks.data.inspection --source train.en --target train.de

Each step has its own process. The keys are of generated pairs; a test set of 1,000 pairs is
compared with them, as `evaluate.py` does.
"""

import itertools
import pathlib
import tempfile
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import Corpus, DataConfig

_TESTED = 1000


def main(source: str, target: str, pairs: int = 3_000_000, output: str = "") -> None:
    """Prints a table with a row for each step.

    Args:
        source: file of source sentences.
        target: file of translations; line n translates line n of source.
        pairs: number of generated pairs.
        output: result file to write, like benchmarks/results/data_inspection.json.
    """
    place, text = "benchmarks.data.inspection", {"source": source, "target": target}
    with tempfile.TemporaryDirectory() as folder:
        keys = {"path": f"{folder}/keys", "pairs": pairs}
        rows = [
            call(f"{place}:inspected", **text, near=False),
            call(f"{place}:inspected", **text, near=True),
            call(f"{place}:written", **keys),
            call(f"{place}:compared", **keys),
        ]
    print(of_rows(rows, left=1))
    results.save(output, rows, ("numpy", "rensa"))


def inspected(source: str, target: str, near: bool) -> dict[str, Any]:
    """The row of an inspection. Call it in a new process."""
    from tf_transformer.data.inspection import inspect

    splits = {"training": [Corpus(source, target)]}
    inspection, usage = usage_of(lambda: inspect(splits, DataConfig(), near))
    step = f"inspect, with{'' if near else 'out'} near texts"
    return _row(step, inspection.corpora[0].pairs, usage.seconds)


def written(path: str, pairs: int) -> dict[str, Any]:
    """The row of keys that are written. Call it in a new process."""
    from benchmarks.data.memory import generated_numbers
    from tf_transformer.data.training_keys import keys_of
    from tf_transformer.files.writing import write_whole

    keys = (block.tobytes() for block in keys_of(generated_numbers(pairs)))
    _, usage = usage_of(lambda: write_whole(path, keys))
    return _row("keys of the training text", pairs, usage.seconds) | {
        "file_mb": round(pathlib.Path(path).stat().st_size / 2**20, 1)
    }


def compared(path: str, pairs: int) -> dict[str, Any]:
    """The row of a test set that is compared with keys. Call it in a new process."""
    from benchmarks.data.memory import generated_numbers
    from tf_transformer.data.training_keys import stored_keys
    from tf_transformer.tasks.seen import Seen
    from tf_transformer.tasks.task import TestSet

    tested = itertools.islice(generated_numbers(pairs), _TESTED)
    test = TestSet(*map(list, zip(*tested, strict=True)))
    (seen,), usage = usage_of(lambda: Seen.of([test], stored_keys(path)))
    if not seen.pairs.all():
        raise RuntimeError(f"{_TESTED:,} pairs are in the training text; found {seen.pairs.sum()}.")
    return _row("a test set compared with the keys", pairs, usage.seconds)


def _row(step: str, pairs: int, seconds: float) -> dict[str, Any]:
    return {
        **{"step": step, "pairs": pairs, "seconds": round(seconds, 2)},
        **{"pairs_per_second": round(pairs / seconds), "peak_mb": round(peak_megabytes())},
    }


if __name__ == "__main__":
    command_line.run(main)
