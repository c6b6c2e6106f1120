r"""Emoji in place of spans, for a model that copies emoji better than other spans.

The n-th span of a text becomes the n-th of `SYMBOLS`. Later spans stay. Symbols in the text are
spans, too. A space divides the symbol of a tag from a word behind it, so that the word has its
usual pieces. `inference/span_symbols.py` does the same on tensors.
"""

import functools
import re
from collections.abc import Sequence

from tf_transformer.text.kept_spans import COMMON, TAG, WITHOUT_SPAN, divide, pattern_of

SYMBOLS = tuple(map(chr, range(0x1F600, 0x1F610)))
"""Faces, which `data.augment.copy` draws most."""
SYMBOL = f"[{SYMBOLS[0]}-{SYMBOLS[-1]}]"
JOIN = "\x01"  # between a tag and a word that it touches; texts lose this character
BEFORE_WORD = rf"({TAG})([^\t\n\f\r <])"  # a tag that touches a word


@functools.cache
def patterns_of(keep: tuple[str, ...]) -> tuple[str, str]:
    """The patterns of the spans of texts, and of texts with `JOIN` behind tags before words.

    `keep` has kinds of spans and patterns; see `kept_spans.pattern_of`.
    """
    symbols = [] if {COMMON, "emoji"} & set(keep) else [SYMBOL]
    joined = [f"{TAG}{JOIN}"] if has_tags(keep) else []
    return pattern_of([*keep, *symbols]), pattern_of([*joined, *keep, *symbols])


def has_tags(keep: Sequence[str]) -> bool:
    """Whether tags are among the kinds of spans."""
    return bool({COMMON, "tags"} & set(keep))


def hide(text: str, keep: tuple[str, ...]) -> str:
    """A text with symbols in place of its spans.

    Example:
        >>> hide("See <br/>{a}, a 🙂.", ("common",))
        'See 😀 😁, a 😂.'
    """
    if re.sub(patterns_of(keep)[0], WITHOUT_SPAN, text, flags=re.ASCII) == text:
        return text
    parts, symbols = _divided(text, keep), iter(SYMBOLS)
    for place in range(1, len(parts), 2):
        if parts[place] and (symbol := next(symbols, "")):
            parts[place] = symbol + " " * parts[place].endswith(JOIN)
    return "".join(parts).replace(JOIN, "")


def show(output: str, text: str, keep: tuple[str, ...]) -> str:
    """An output with the spans of a text in place of symbols.

    Of a text with spans, symbols that stand for none go.

    Example:
        >>> show("😁 und 😅", "{a} and {b}", ("common",))
        '{b} und '
    """
    spans = [span for span in _divided(text, keep)[1::2] if span]
    if not spans or not re.search(SYMBOL, output):
        return output
    shown = dict.fromkeys(SYMBOLS, "") | dict(zip(SYMBOLS, spans, strict=False))
    parts = divide(output, pattern_of([SYMBOL]))
    return re.sub(f" ?{JOIN} ?", "", "".join(shown.get(part, part) for part in parts))


def _divided(text: str, keep: tuple[str, ...]) -> list[str]:
    """A text divided into text, span, text, and so on; tags have `JOIN` before words."""
    text = text.replace(JOIN, "")
    if has_tags(keep):
        text = re.sub(BEFORE_WORD, rf"\1{JOIN}\2", text, flags=re.ASCII)
    return divide(text, patterns_of(keep)[1])
