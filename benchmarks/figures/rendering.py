"""Texts that any result file can be rendered as."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import of_rows

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


def machine(result: Mapping[str, Any]) -> str:
    """The machine of a result, in words."""
    parts = result["machine"]
    count = f"{parts['cores']} core{'s' * (parts['cores'] > 1)}"
    return f"{count} of an {parts['processor']} with {parts['instruction_set']}"


def measured_with(names: Sequence[str]) -> str:
    """The dates, the machine and the versions of results of one machine."""
    results = [read(name) for name in names]
    (where,) = {f"{machine(result)}, {result['machine']['memory']}" for result in results}
    dates = " and ".join(sorted({result["date"] for result in results}))
    versions = {name: number for result in results for name, number in result["versions"].items()}
    packages = ", ".join(f"{package} {version}" for package, version in versions.items())
    return f"Measured on {dates} on {where}, with {packages}."


def with_sources(blocks: Mapping[str, Renderer], folder: pathlib.Path) -> dict[str, Renderer]:
    """Blocks, with NAME.source for each result file of a folder."""
    return {**blocks, **{f"{name}.source": _source_of(name) for name in result_names(folder)}}


def _source_of(name: str) -> Renderer:
    return lambda: source(name)
