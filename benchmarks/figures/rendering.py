"""Texts that any result file can be rendered as."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.figures.values import key_fields, machine, place_of
from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import markdown, of_rows

Renderer = Callable[[], str]


def rows_of(name: str) -> Sequence[dict[str, Any]]:
    """The measurements of a result file."""
    return read(name)["measurements"]


def fields_of(name: str, columns: dict[str, str] | None = None, left: int = 1) -> Renderer:
    """A renderer of the rows of a result file.

    Args:
        name: name of the file.
        columns: the header of each field; None: all fields, under their names.
        left: number of columns that are aligned left.
    """
    return lambda: of_rows(rows_of(name), columns, left)


def source(name: str) -> str:
    """How a result was measured: machine, date, versions, command."""
    result = read(name)
    note = f" {result['note']}" if "note" in result else ""
    return f"{measured_with([name])}{note}\n\n```\n{result['command']}\n```"


def measured_with(names: Sequence[str]) -> str:
    """The dates, the machine and the versions of results of one machine."""
    results = [read(name) for name in names]
    (where,) = {f"{machine(result)}, {result['machine']['memory']}" for result in results}
    dates = " and ".join(sorted({result["date"] for result in results}))
    versions = {name: number for result in results for name, number in result["versions"].items()}
    packages = ", ".join(f"{package} {version}" for package, version in versions.items())
    return f"Measured on {dates} on {where}, with {packages}."


def with_sources(blocks: Mapping[str, Renderer], folder: pathlib.Path) -> dict[str, Renderer]:
    """Blocks, with NAME.source for each result file of a folder, and `names`, which lists them."""
    names = result_names(folder)
    sources: dict[str, Renderer] = {f"{name}.source": _source_of(name) for name in names}
    everything = {**blocks, **sources}
    return {**everything, "names": lambda: _list_of(names, sorted(everything))}


def _source_of(name: str) -> Renderer:
    return lambda: source(name)


def _list_of(names: Sequence[str], blocks: Sequence[str]) -> str:
    """The blocks of each result file, and the keys of its values."""
    rows = []
    for name in names:
        own = [block for block in blocks if block.split(".")[0] == name]
        entries = (", ".join(f"`{entry}`" for entry in column) for column in (own, _keys(name)))
        rows.append([f"`{name}`", *(entry or "–" for entry in entries)])
    return markdown(["result file", "blocks", "values after `NAME.`"], rows, left=3)


def _keys(name: str) -> list[str]:
    """The keys of the values of a result file; all keys of a row are one entry."""
    result = read(name)
    keys = list(result.get("summary", {}))
    if fields := key_fields().get(name):
        row = result["measurements"][0]
        others = "|".join(field for field in row if field not in fields)
        keys.append(f"{place_of(name, row)}.({others})".replace("|", r"\|"))
    return keys
