r"""Spans of a text that a translation keeps byte for byte: addresses, codes, tags, emoji.

Python's `re` and RE2, the engine of graphs, read the patterns alike: they have no lookaround and no
`\s`, and the flag `re.ASCII` gives `\w`, `\d` and `\b` one meaning. A pattern that must not match
in some context comes with a pattern of this context, which is matched first and kept out.
"""

import re
from collections.abc import Sequence

from tf_transformer.errors import InputError

COMMON = "common"  # stands for all of `KINDS`
# Above these, the spans stand before the translation: memory and time to place them are quadratic.
MOST_SPANS, MOST_BYTES = 500, 2**14  # spans of a text and its translation, bytes of the text
ATTENDED = 0.5  # the share of attention with which a token is a copy of a span
OF_MARKS = 0.25  # the weight of a mark beside a word, when the first word of a content is chosen
CLOSING_MARKS = b" .,;:!?)"  # a space, and marks without a space before them
_SPACE = " \t\n\r\f\v\u00a0\u202f\u3000"
_LETTER = "\\w\u00aa\u00b5\u00ba\u00c0-\u1fff\u2c00-\u2dff\u3040-\ud7ff\uf900-\ufdff"

# Parentheses belong to an address in pairs. It does not end in a punctuation mark.
_NOT_IN_URL = _SPACE + '<>"{}|^`()\\\\\u201c\u201d\u201e\u00ab\u00bb\u3001\u3002'
_PAIR = rf"\([^{_NOT_IN_URL}]*\)"
_URL = (
    rf"(?:(?:https?|ftp|file)://|www\.)(?:[^{_NOT_IN_URL}]|{_PAIR})*"
    rf"(?:[^{_NOT_IN_URL}.,;:!?'\[\]*_~…’]|{_PAIR})"
)
_EMAIL = r"\w[\w.+-]{0,63}@\w[\w-]*(?:\.\w[\w-]*)+"

_MINUS, _SPACE_OF_UNIT = "\u2212", " \u00a0\u202f"
_NUMBER = rf"[+{_MINUS}-]?\d+(?:[.,]\d+)*[{_SPACE_OF_UNIT}]?"
_LETTERS_OF_UNITS = (
    "km/h|m/s|[KMG]bit/s|[kcdm\u00b5\u03bcn]?m|[km\u00b5\u03bcn]?g"
    "|[mcdh]?l|ha|mph|ms|min|h|[km]?bar|[kMGT]i?B|[KMG]bit|[kMG]?Hz|k[VWAJ]"
    "|mA|mAh|[kMGT]Wh?|[kM]?cal|[kMh]?Pa|d[Bb]|ppm|px|pt|dpi"
)
_UNIT = rf"(?:[kcdm]?m[²³]|(?:{_LETTERS_OF_UNITS}|°[CF])\b)"

_CONVERSION = r"[-+#0,']{0,4}(?:\d{1,3}|\*)?(?:\.(?:\d{1,2}|\*))?(?:hh|ll|[hlLqjzt])?"
_PERCENT = "|".join(
    [
        r"%[{<]\w{1,40}[}>]|%\([\w.-]{1,40}\)" + _CONVERSION + "[A-Za-z]",  # %{name}, %(name)s
        r"%(?:\d{1,2}\$)?" + _CONVERSION + "[@diouxXeEfFgGaAcCsSp]",  # %s, %1$s, %.2f
        r"%%|%[1-9]\b",
    ]
)
_FORMS = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
_ARGUMENT = r"\{[ ]?[\w.-]+[ ]?,[ ]?"
_BRACES = "|".join(
    [
        r"\{\{[^{}]*\}\}|\{%[^{}]*%\}",  # {{name}}, {% if %}
        _ARGUMENT + rf"(?:plural|select|selectordinal|choice)\b{_FORMS}\}}",
        _ARGUMENT + r"(?:number|date|time|spellout|ordinal|duration)\b[^{}]*\}",
        rf"[$#]?\{{[^{_SPACE}{{}}]*\}}",  # {name}, {}, {0:.2f}, ${name}
        r"\$t\([^()]*\)",
    ]
)
_BLANK = "[ \t\n\r\f]"
_VALUE = rf"(?:\"[^\"<]*\"|'[^'<]*'|[^{_SPACE}\"'<>]+)"
_ATTRIBUTE = rf"{_BLANK}+[\w:.@-]+(?:{_BLANK}*={_BLANK}*{_VALUE})?"
TAG = rf"</?[A-Za-z][\w:.-]*(?:{_ATTRIBUTE})*{_BLANK}*/?>"
CLOSING = r"</[^>]*>"
TAG_NAME = r"^</?([\w:.-]+)[^<]*$"
# A tag without content: it has a slash, or HTML closes it nowhere.
ALONE = (
    r"<[^/][^<]*/>|(?i:<(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr))\b[^<]*>"
)
_BLOCKS = """
article aside blockquote body br center dd details div dl dt figcaption figure footer form h1 h2 h3
h4 h5 h6 head header hr html li main nav ol p pre section summary table tbody td tfoot th thead tr
ul
"""
BLOCKS = tuple(_BLOCKS.split())
"""Elements of HTML that no sentence reaches into or out of."""
BLOCK_TAG = rf"</?(?i:{'|'.join(BLOCKS)})(?:{_ATTRIBUTE})*{_BLANK}*/?>"
_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,30});"

_PICTURE = (
    "[\u231a\u231b\u2328\u23e9-\u23fa\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001faff]"
    "[\ufe0f\U0001f3fb-\U0001f3ff]?"
)
_EMOJI = (
    f"{_PICTURE}(?:\u200d{_PICTURE})*|[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3"  # flags
)

KINDS = {
    "addresses": f"{_URL}|{_EMAIL}",
    "tags": f"{TAG}|<!--[^<>]*-->|<%[^%<>]*%>|{_ENTITY}",
    "placeholders": f"{_PERCENT}|{_BRACES}",
    "units": _NUMBER + _UNIT,
    "emoji": _EMOJI,
}
"""The patterns of each kind of span, by the name that an option gives it."""

# What no span starts in: a number with a unit before another letter, a percentage, a word.
_NOT_KEPT = rf"{_NUMBER}{_UNIT}[{_LETTER}]|\d+(?:[.,]\d+)*[{_SPACE_OF_UNIT}]?%"
_WORD = f"[{_LETTER}]+"
_NEVER = "[^\\x00-\U0010ffff]"  # matches no character
REPLACEMENT = "\\2\\4\0\\1\\3\0"
"""In place of each match of `pattern_of`: what is no span, a NUL, the span, and a NUL."""
WITHOUT_SPAN = r"\2\4"
"""In place of each match of `pattern_of`: what is no span."""


# The placeholders that a notice looks for. Of a message with forms, only the start counts.
CODES = "|".join(
    [
        rf"{_ARGUMENT}(?:plural|select|selectordinal|choice)\b",
        r"%(?:\d{1,2}\$)?#@\w{1,40}@|%[A-Za-z_]\w{2,39}%|%[A-Za-z][a-z][A-Za-z\d]{2}\w{0,36}",
        f"{KINDS['placeholders']}|{KINDS['tags']}",
        r"%-?[A-Za-z]\b|\$[a-z_]\w{1,40}|\[\[[^\[\]]*\]\]|__\w{1,40}__",
        rf":[a-z_]\w{{1,40}}|@[a-z]\w{{1,40}}|&[{_LETTER}]|\\(?:[abfnrtv0]|[ux][0-9A-Fa-f]{{2,8}})",
    ]
)
IN_CODES = r"%{<&$@\\\[_"  # each of them has one of these characters, or a colon before a letter
# What none of them starts in: percentages, marks of Moses, words and addresses. Most languages
# write %1 in programs only, and Turkish writes %50 for 50%.
NO_CODES = "|".join(
    [
        rf"\d+(?:[.,]\d+)*[{_SPACE_OF_UNIT}]?%|%[2-9]\b|%1[.,]\d|%-[{_LETTER}]{{2}}",
        r"&(?:amp|lt|gt|quot|apos|#91|#93|#124);",
        rf"(?:[A-Za-z0-9]|[^\x00-\x7f])[{_LETTER}]*(?:[&@:./]+[{_LETTER}]+)*|[,.]:\w+",
    ]
)


def pattern_of(keep: Sequence[str]) -> str:
    """The pattern that finds spans, groups 1 and 3, and steps over other text, groups 2 and 4.

    Args:
        keep: names of `KINDS`, `common` for all of them, or patterns of the user, which come first.

    Raises:
        InputError: for a pattern that Python cannot read, that matches the empty text, or that has
            a group that captures.
    """
    own = [pattern for pattern in keep if pattern not in {COMMON, *KINDS}]
    for pattern in own:
        _require_pattern(pattern)
    kinds = [pattern for name, pattern in KINDS.items() if {name, COMMON} & set(keep)]
    alternatives = [own, [_NOT_KEPT], kinds, [_WORD]]
    return "|".join(
        f"({'|'.join(f'(?:{x})' for x in group or [_NEVER])})" for group in alternatives
    )


def _require_pattern(pattern: str) -> None:
    """Raises an `InputError` for a pattern that cannot find spans."""
    try:
        compiled = re.compile(f"(?:{pattern})", re.ASCII)
    except re.error as error:
        raise InputError(
            f"decode.keep has the pattern {pattern!r:.80}, which is wrong: {error}."
        ) from error
    if compiled.groups:
        raise InputError(
            f"decode.keep has the pattern {pattern!r:.80}, whose group captures. Write (?:...) for "
            "(...)."
        )
    if compiled.search(""):
        raise InputError(
            f"decode.keep has the pattern {pattern!r:.80}, which matches an empty text. Write a "
            "pattern with at least one character."
        )


def spans(text: str, keep: Sequence[str] = (COMMON,)) -> list[str]:
    """The spans of a text that a translation keeps, in order.

    Example:
        >>> spans("See <b>https://a.org/x</b>, {name}: 5 km, 20% 🙂.")
        ['<b>', 'https://a.org/x', '</b>', '{name}', '5 km', '🙂']
        >>> spans("Order AB-12 by mail to me@a.org.", ("addresses", "[A-Z]{2}-[0-9]+"))
        ['AB-12', 'me@a.org']
    """
    return [span for span in divide(text, pattern_of(keep))[1::2] if span]


def without_spans(text: str, keep: Sequence[str] = (COMMON,)) -> str:
    """A text without its spans.

    Example:
        >>> without_spans("Hello {name}!")
        'Hello !'
    """
    return re.sub(pattern_of(keep), WITHOUT_SPAN, text, flags=re.ASCII)


def divide(text: str, pattern: str) -> list[str]:
    """Divides a text without NUL into text, span, text, ..., text. Spans may be empty."""
    return re.sub(pattern, REPLACEMENT, text, flags=re.ASCII).split("\0")
