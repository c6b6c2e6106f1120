"""A table of text for people, with a line for each corpus."""

from collections.abc import Mapping


def table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """Lines of aligned columns, one for each named row, each after a newline; "" without rows.

    Example:
        >>> print(table({"a.en-de": {"pairs": "1,000"}, "b.en-de": {"pairs": "20", "loss": "1.5"}}))
        <BLANKLINE>
          corpus   pairs  loss
          a.en-de  1,000
          b.en-de     20   1.5
    """
    if not rows:
        return ""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    cells = [["corpus", *columns]]
    cells += [[name, *(row.get(column, "") for column in columns)] for name, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in cells)
    return "".join(f"\n  {'  '.join(row).rstrip()}" for row in aligned)
