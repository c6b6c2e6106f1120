"""Messages about examples that training skips."""

from collections import Counter

NOT_UTF8 = "not UTF-8"
EMPTY = "empty text"
MANY = 0.1  # share of all examples


def summary(kept: int, skipped: Counter[str]) -> str:
    """Describes the numbers of kept and of skipped examples, by reason, in a line."""
    return f"{kept:,} examples" + "".join(
        f", {count:,} skipped ({reason})" for reason, count in skipped.items()
    )


def warning(kept: int, skipped: Counter[str]) -> str:
    """Makes a warning if many examples are skipped, or if one is not UTF-8; otherwise ""."""
    total = kept + skipped.total()
    broken = any(reason.startswith(NOT_UTF8) for reason in skipped)
    if not broken and skipped.total() <= MANY * total:
        return ""
    advice = " Convert the file to UTF-8, for example with iconv -f LATIN1 -t UTF-8." * broken
    return f"{skipped.total():,} of {total:,} examples are skipped: {reasons(skipped)}.{advice}"


def reasons(skipped: Counter[str]) -> str:
    """Lists the number of examples for each reason."""
    return ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
