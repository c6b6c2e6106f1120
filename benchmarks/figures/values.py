"""Single numbers of results, as text for the middle of a sentence.

A name is the name of a result file and a key of a number in the file, with a dot between them. A
key is one of these:

- an entry of the file's circumstances or summary: `multi30k.date`, `contract.sentences`;
- the key fields of a row and a field of the row:
  `decode.base.savedmodel.beam4.batch1.tokens_per_second`.

In a key, a number follows the name of its field. A flag is the name of its field, with no_ before
it if the flag is false (`remat.no_remat.seconds`). In a text, _ replaces all characters except
letters and digits.
"""

import functools
import re
from typing import Any

import yaml

from benchmarks.harness.results import FOLDERS, read, result_names
from benchmarks.harness.tables import formatted


@functools.cache
def key_fields() -> dict[str, tuple[str, ...]]:
    """The fields that tell the rows of each table apart, from keys.yaml beside the result files."""
    files = [folder / "keys.yaml" for folder in FOLDERS]
    entries = [yaml.safe_load(file.read_text("utf-8")).items() for file in files]
    return {table: tuple(fields) for tables in entries for table, fields in tables}


def value(name: str) -> str:
    """The text for a name.

    Raises:
        KeyError: for an unknown name.
    """
    result, _, key = name.partition(".")
    return values(result)[key]


@functools.cache
def values(result: str) -> dict[str, str]:
    """All values of a result file, by their keys.

    Raises:
        KeyError: for an unknown file.
    """
    if result not in result_names():
        raise KeyError(result)
    entries = read(result)
    texts = {"machine": machine(entries), "date": entries["date"], "command": entries["command"]}
    texts |= {key: formatted(key, number) for key, number in entries.get("summary", {}).items()}
    tables = {result: entries["measurements"]}
    tables |= {f"{result}.{name}": rows for name, rows in entries.items()}
    for table, fields in key_fields().items():
        for row in tables.get(table, ()):
            place = f"{table}.{place_of(table, row)}".removeprefix(f"{result}.")
            texts |= {
                f"{place}.{_selector('', field)}": formatted(field, entry)
                for field, entry in row.items()
                if field not in fields and isinstance(entry, int | float | str)
            }
    return texts


def machine(result: dict[str, Any]) -> str:
    """The machine of a result, in words."""
    parts = result["machine"]
    count = f"{parts['cores']} core{'s' * (parts['cores'] > 1)}"
    return f"{count} of an {parts['processor']} with {parts['instruction_set']}"


def place_of(table: str, row: dict[str, Any]) -> str:
    """The key fields that select a row of a table."""
    return ".".join(_selector(field, row[field]) for field in key_fields()[table])


def _selector(field: str, entry: Any) -> str:
    if isinstance(entry, bool):
        return field if entry else f"no_{field}"
    if isinstance(entry, int):
        return f"{field}{entry}"
    return re.sub(r"[^a-z0-9]+", "_", entry.lower()).strip("_")
