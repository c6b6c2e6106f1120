"""Glossaries that clients send, which a server holds in memory."""

import csv
import datetime
import io
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from tf_transformer.run.directions import Direction
from tf_transformer.serving.requests import require, shown
from tf_transformer.text.normalization import well_formed

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
MOST = 1000  # glossaries of a server; its limit of a request bounds their size


@dataclass(frozen=True)
class Glossary:
    """Phrases with their translations, and the time of its making."""

    name: str
    direction: Direction
    entries: Mapping[str, str]  # translations by phrase
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: str = field(default_factory=lambda: f"{datetime.datetime.now(datetime.UTC):{_TIME}}")

    def tsv(self, texts: Sequence[str] | None = None) -> str:
        r"""The entries, or only those that may occur in texts, as a line each.

        Example:
            >>> pair = Direction("en", "de")
        >>> glossary = Glossary("cars", pair, {"car park": "Parkplatz", "cat": "Katze"})
            >>> glossary.tsv(["The Car  Park"])
            'car park\tParkplatz'
        """
        inside = None if texts is None else "\n".join(map(_without_space, texts))
        return "\n".join(
            f"{phrase}\t{translation}"
            for phrase, translation in self.entries.items()
            if inside is None or _without_space(phrase) in inside
        )


def read_entries(given: Mapping[str, Any]) -> dict[str, str]:
    """The `entries` of a request: lines of a phrase and its translation, as TSV or CSV."""
    form, text = given.get("entries_format"), given.get("entries")
    require(form in ("tsv", "csv"), f"Expected tsv or csv as entries_format, got {shown(form)}.")
    require(isinstance(text, str), f"Expected a text as entries, got {shown(text)}.")
    content = well_formed(str(text))
    try:
        lines = csv.reader(io.StringIO(content)) if form == "csv" else content.split("\n")
        rows = [line.split("\t") if isinstance(line, str) else line for line in lines]
    except csv.Error as error:
        raise HTTPException(400, f"The entries are not CSV: {error}.") from error
    entries = dict[str, str]()
    for number, row in enumerate(rows, 1):
        cells = [" ".join(cell.split()) for cell in row[:2]]
        if not any(cells):
            continue
        where = f"Entry {number} must be a new phrase and its translation, got {shown(row)}."
        require(len(cells) == 2 and all(cells) and cells[0] not in entries, where)
        entries[cells[0]] = cells[1]
    require(bool(entries), "A glossary needs entries.")
    return entries


def _without_space(text: str) -> str:
    return "".join(text.casefold().split())
