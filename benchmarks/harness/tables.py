"""Markdown tables, and numbers formatted for a reader."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMATS = {
    "bleu": ".2f",
    "chrf": ".2f",
    "exact_match": ".1%",
    "padding": ".2%",
    "ratio_to_ctranslate2": ".2f",
    "ratio_to_fastest_other": ".2f",
}
_DURATIONS = {"training_seconds", "total_seconds"}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table; the first `left` columns are aligned left, all others right."""
    rule = ["---" if column < left else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def of_rows(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | None = None, left: int = 0
) -> str:
    """A table of the rows of a result.

    Args:
        rows: measurements with the same fields.
        columns: the header of each field; None: all fields, under their names.
        left: number of columns that are aligned left.
    """
    columns = columns or {field: field for field in rows[0]}
    texts = [[formatted(field, row.get(field)) for field in columns] for row in rows]
    return markdown(list(columns.values()), texts, left)


def formatted(field: str, entry: Any) -> str:
    """The entry of a field, formatted for a reader."""
    if entry is None:
        return "–"
    if isinstance(entry, list):
        return " → ".join(formatted(field, value) for value in entry)
    if isinstance(entry, dict):
        return ", ".join(f"{name}: {formatted(field, value)}" for name, value in entry.items())
    if isinstance(entry, str):
        return entry
    if isinstance(entry, bool):
        return "on" if entry else "off"
    if field in _FORMATS:
        return format(entry, _FORMATS[field])
    if field in _DURATIONS:
        minutes, seconds = divmod(round(entry), 60)
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    if isinstance(entry, int) or abs(entry) >= 100:
        return f"{entry:,.0f}"
    if 0 < abs(entry) < 1e-3:
        return re.sub(r"e-0*", "e-", f"{entry:.1e}").replace(".0e", "e")
    return f"{entry:g}"
