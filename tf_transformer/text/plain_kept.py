"""Spans that stand in each translation as in its source, without TensorFlow.

`inference/kept_graph.py` does the same on tensors. Here, no prefix is given.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from tf_transformer.text import span_symbols
from tf_transformer.text.kept_spans import (
    MOST_BYTES,
    MOST_SPANS,
    WITHOUT_SPAN,
    divide,
    pattern_of,
)
from tf_transformer.text.plain_elements import TOUCHING, closes, is_paired, is_well_formed
from tf_transformer.text.plain_places import Drawn, Places, Span, with_own_spaces

CountTokens = Callable[[str], int]
"""A function of a start of a source to the number of its tokens."""


class PlainKeptSpans:
    """Finds translations with other spans than their texts, and repairs them.

    Args:
        keep: kinds of spans and patterns; see `kept_spans.pattern_of`. With none, no text has
            spans.
        keep_as: emoji: the model reads an emoji in place of each span; text: it reads the spans.

    Example:
        >>> kept = PlainKeptSpans(["common"])
        >>> drawn = Drawn("Hallo Name", [0, 5, 10], np.eye(2, dtype=np.float32))
        >>> kept.is_wrong("Hi {a}", drawn.output)
        True
        >>> kept.repair("Hi {a}", drawn, lambda start: len(start.split()))
        'Hallo {a}'
    """

    def __init__(self, keep: Sequence[str] = (), keep_as: str = "text"):
        self.pattern = pattern_of(keep) if keep else ""
        self._symbols = tuple(keep) if keep_as == "emoji" else ()

    def spans(self, text: str) -> list[str]:
        """The spans of a text, in order."""
        return [span.text for span in self._located(text)]

    def without_spans(self, text: str) -> str:
        """A text without its spans."""
        return re.sub(self.pattern, WITHOUT_SPAN, text, flags=re.ASCII) if self.pattern else text

    def hidden(self, text: str) -> str:
        """A text as the model reads it: without the tags of elements, with emoji for spans."""
        text = self._untagged(text)
        return span_symbols.hide(text, self._symbols) if self._symbols else text

    def shown(self, output: str, text: str) -> str:
        """An output of the model for a text, with the spans that `hidden` hides."""
        if not self._symbols:
            return output
        return span_symbols.show(output, self._untagged(text), self._symbols)

    def is_wrong(self, text: str, output: str) -> bool:
        """Whether an output has other spans than its text, or may have other spaces between."""
        if not (wanted := self.spans(text)):
            return False
        return wanted != self.spans(output) or re.search(TOUCHING, text) is not None

    def repair(self, text: str, drawn: Drawn, count_tokens: CountTokens) -> str:
        """The output with each span of the text once; in markup, tags stay well-formed."""
        wanted, given = self._located(text), self._located(drawn.output)
        result, is_small = drawn.output, _is_small(text, wanted, given)
        if not _holds(wanted, given):
            spans = [span.text for span in wanted]
            texts = [*spans, *divide(drawn.output, self.pattern)[::2]]
            result = " ".join(filter(None, texts))
            if is_small:
                source = text.encode()
                starts = [[source[:place].decode() for place in span[1:]] for span in wanted]
                tokens = [(count_tokens(first), count_tokens(stop)) for first, stop in starts]
                placed = Places(text, wanted, drawn, given, tokens).joined()
                choices = (x for x in (placed, result) if _holds(wanted, self._located(x)))
                result = next(choices, " ".join(spans))
        if not is_small:
            return result
        spaced = with_own_spaces(text, wanted, result, self._located(result))
        return spaced if _holds(wanted, self._located(spaced)) else result

    def in_joined(self, text: str, output: str) -> str:
        """An output that was joined from those of the parts of a text, repaired.

        Each part has its spans already. Parts of spans that form others go, and tags nest over the
        whole text.
        """
        size = len(output.encode())
        drawn = Drawn(output, [0, size], np.zeros((1, 1), np.float32))
        is_small = _is_small(text, self._located(text), self._located(output))
        if not is_small or not self.is_wrong(text, output):
            return output
        return self.repair(text, drawn, lambda start: 0)

    def _located(self, text: str) -> list[Span]:
        parts = divide(text, self.pattern) if self.pattern else [text]
        found, stop = [], 0
        for place, part in enumerate(parts):
            start, stop = stop, stop + len(part.encode())
            if place % 2 and part:
                found.append(Span(part, start, stop))
        return found

    def _untagged(self, text: str) -> str:
        """A text without tags that open or close an element with content.

        A space divides the contents of two elements that touch each other.
        """
        if not self.pattern or not re.search("<[A-Za-z/]", text):
            return text
        parts = divide(text, self.pattern)
        is_tag = [place % 2 == 1 and is_paired(part) for place, part in enumerate(parts)]
        for place in range(2, len(parts) - 1, 2):
            ends = is_tag[place - 1] and closes(parts[place - 1])
            begins = is_tag[place + 1] and not closes(parts[place + 1])
            if ends and begins and not parts[place]:
                parts[place] = " "
        return "".join("" if tag else part for tag, part in zip(is_tag, parts, strict=True))


def _is_small(source: str, wanted: Sequence[Span], given: Sequence[Span]) -> bool:
    """Whether there is memory and time to place the spans."""
    return len(wanted) + len(given) <= MOST_SPANS and len(source.encode()) <= MOST_BYTES


def _holds(wanted: Sequence[Span], given: Sequence[Span]) -> bool:
    """Whether the spans of an output keep those of its source."""
    own, counts = (Counter(span.text for span in spans) for spans in (wanted, given))
    if any(counts[text] != count for text, count in own.items()):
        return False
    nested = [is_well_formed([span.text for span in spans]) for spans in (wanted, given)]
    return nested[1] or not nested[0]
