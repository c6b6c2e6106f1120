"""Tables of text for people."""

from collections.abc import Callable, Mapping, Sequence


def aligned(cells: Sequence[Sequence[str]], is_right: Callable[[int, str], bool]) -> list[str]:
    """The rows of a table as lines. `is_right` says of a column and a cell whether it is a number.

    Example:
        >>> aligned([["a", "size"], ["total", "7"]], lambda column, cell: column == 1)
        ['a      size', 'total     7']
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if is_right(column, cell) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


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
    return "".join(f"\n  {line}" for line in aligned(cells, lambda column, _: column > 0))
