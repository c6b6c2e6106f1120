"""Result files: measurements with their circumstances.

A result file is JSON:

- command: the command that repeats the measurement;
- machine: processor, cores, instruction_set, memory;
- date, and versions of packages;
- measurements: rows, which may have different keys;
- summary: optional numbers of the whole run;
- note: optional text for the reader.
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.environment import circumstances
from tf_transformer.files.writing import write_whole

ROOT = pathlib.Path(__file__).parents[2]
# A name stands in one of them.
FOLDERS = (ROOT / "benchmarks" / "results", ROOT / "research" / "results")

Row = dict[str, Any]


def save(output: str, rows: Sequence[Row], packages: Sequence[str], **more: Any) -> None:
    """Writes a result file.

    Args:
        output: path of the file; empty: nothing is written.
        rows: the measurements.
        packages: distributions whose versions matter.
        **more: further entries, like summary.
    """
    if not output:
        return
    result = circumstances(*packages) | more | {"measurements": list(rows)}
    write_whole(output, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def path_of(name: str) -> pathlib.Path:
    """The path of the result file of a name."""
    paths = [folder / f"{name}.json" for folder in FOLDERS]
    return next(filter(pathlib.Path.is_file, paths), paths[0])


def read(name: str) -> dict[str, Any]:
    """The result file of a name; see the module's docstring for its entries."""
    return load(path_of(name))


def load(path: str | pathlib.Path) -> dict[str, Any]:
    """The result file at a path."""
    return json.loads(pathlib.Path(path).read_text("utf-8"))


def result_names(*folders: pathlib.Path) -> list[str]:
    """The names of all result files in `folders`; by default in `FOLDERS`."""
    files = (path for folder in folders or FOLDERS for path in folder.glob("*.json"))
    return sorted(path.stem for path in files)
