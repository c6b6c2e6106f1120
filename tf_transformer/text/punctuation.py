"""Punctuation as in the training texts of OPUS-MT's models.

Their preprocessing ran the Moses scripts that replace Unicode punctuation, normalize punctuation
and remove characters that are not printed. Rules of these scripts for one language are left out:
the order of quotation marks and commas, and spaces between digits.
"""

import re

# Pairs of a pattern and its replacement, applied in order. `re` and RE2 read them alike.
RULES: tuple[tuple[str, str], ...] = (
    *(("[。．] *", ". "), ("[，、]", ","), ("[”“《》」「]", '"'), ("[∶：]", ":")),
    *(("？", "?"), ("！", "!"), ("；", ";"), ("（", "("), ("）", ")"), ("～", "~"), ("％", "%")),
    *(("…", "..."), ("━", "-"), ("〈", "<"), ("〉", ">"), ("【", "["), ("】", "]"), ("’", "'")),
    *((chr(ord("０") + digit), str(digit)) for digit in range(10)),
    ("[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]", " "),
    *(("[(]", " ("), ("[)]", ") "), (" +", " "), ("[)] ([.!:?;,])", r")\1")),
    *(("[(] ", "("), (" [)]", ")"), ("([0-9]) %", r"\1%"), (" ([:;])", r"\1")),
    *(("`", "'"), ("''", ' " '), ("„", '"'), ("–", "-"), ("—", " - "), ("[´‘‚]", "'")),
    *(("''", '"'), ("\u00a0?[«»]\u00a0?", '"'), ("\u00a0(%|:|;|[?]|!)", r"\1")),
    *(("nº\u00a0", "nº "), ("\u00a0(ºC|cm)", r" \1"), (",\u00a0", ", ")),
    *((" +", " "), ("^ | $", "")),
)
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in RULES]


def opus_punctuation(text: str) -> str:
    """A line with ASCII punctuation, single spaces, and no control characters.

    Example:
        >>> opus_punctuation("„Ja“ – he said…  （no）")
        '"Ja" - he said... (no)'
    """
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    return text
