"""Where the spans of a text stand in an output of a model, in NumPy.

`inference/kept_places.py` has the same rules on tensors, with their reasons, for outputs that may
start with a prefix.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.text.kept_spans import ATTENDED, CLOSING_MARKS, OF_MARKS
from tf_transformer.text.normalization import WHITE_SPACE
from tf_transformer.text.plain_elements import closes, is_tag, is_well_formed, openings

# Before what a span may stand in an output, besides its start: the ends of words, and the first
# bytes of U+3000 to U+9FFF.
_GAP = rb"(?=\Z| |[.,;:!?)](?: |\Z)|[\xe3-\xe9])"


class Span(NamedTuple):
    """A span of a string."""

    text: str
    start: int  # index of the first byte
    stop: int  # index after the last byte


class Drawn(NamedTuple):
    """What a model made of a text: the attention of each token of an output, and its bytes."""

    output: str
    ends: Sequence[int]  # T + 1: bytes of the output after its first t tokens
    weights: np.ndarray  # float32 (T, S): rows sum to 1, or to 0 after the last token of text


class Places:
    """The places of the spans of a source in an output of n bytes.

    Args:
        source, wanted: a text and its K spans, at least one.
        drawn, given: an output for it, and the spans of this output.
        tokens: for each wanted span, its first token in the source, and the token after it.
    """

    def __init__(
        self,
        source: str,
        wanted: Sequence[Span],
        drawn: Drawn,
        given: Sequence[Span],
        tokens: Sequence[tuple[int, int]],
    ):
        self.wanted, self.given, self.tokens = wanted, given, tokens
        self.spans = [span.text for span in wanted]
        self.opening = openings(self.spans)
        own, keys = dict(zip(_numbered(given), given, strict=True)), _numbered(wanted)
        self.own = [own.get(key) for key in keys]  # the given span that is the wanted one
        self.is_kept = [key in keys for key in own]
        self.source, self.output = source.encode(), drawn.output.encode()
        self.ends, self.weights = np.array(drawn.ends), drawn.weights
        places = np.arange(len(self.output))
        token = np.searchsorted(self.ends[1:], places, side="right")
        self.token = np.minimum(token, len(self.weights) - 1)  # of each byte
        self.is_space = np.array([code == ord(" ") for code in self.output], bool)
        # All bytes beyond ASCII belong to letters or digits.
        self.is_letter = np.array([x >= 0x80 or chr(x).isalnum() for x in self.output], bool)
        starts = ~(self.is_letter & np.append(False, self.is_letter)[:-1])
        self.word = np.cumsum(starts) - 1  # of each byte; other characters are words of their own

    def joined(self) -> str:
        """The output with each wanted span at its place."""
        copies, removed = self._copies()
        start, stop = map(list, zip(*map(self._bounds, range(len(copies)), copies), strict=True))
        self._enclose_contents(copies, start, stop)
        for k, (before, after) in enumerate(map(self._had_space, self.wanted)):
            is_behind = (before or not closes(self.spans[k])) and not after
            start[k] += is_behind and start[k] == stop[k] and self._byte(stop[k]) == b" "
        start = [own.start if own else at for own, at in zip(self.own, start, strict=True)]
        for k, opening in enumerate(self.opening):
            if opening >= 0 and not self.own[k]:
                start[k] = max(start[k], start[opening])
        at, order = self._nested(start)
        parts = {2 * n + 1: self._byte(n) for n in np.flatnonzero(~removed).tolist()}
        for k in order:  # a span stands before the byte of its place
            end = max(at[k], stop[k]) if at[k] == start[k] else at[k]
            parts[2 * at[k]] = parts.get(2 * at[k], b"") + self._spaced(k, at[k], end).encode()
        joined = b"".join(parts[key] for key in sorted(parts))
        return joined.decode("utf-8", "replace").replace("\0", "")

    def _copies(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The bytes in whose place each span stands, bool (n,) each, and all that go, bool (n,)."""
        is_free = np.ones(len(self.output), bool)
        for span, is_kept in zip(self.given, self.is_kept, strict=True):
            if is_kept:
                is_free[span.start : span.stop] = False  # it is put in again
        copies = [self._copy(k, is_free) for k in range(len(self.spans))]
        removed = np.any([~is_free, *copies], axis=0)
        for span, is_kept in zip(self.given, self.is_kept, strict=True):
            if not is_kept and (span.text in self.spans or is_tag(span.text)):
                has_spaces = self._byte(span.start - 1) == b" "
                has_spaces &= self._byte(span.stop) in CLOSING_MARKS
                removed[span.start - has_spaces : span.stop] = True
        return copies, removed

    def _copy(self, k: int, is_free: np.ndarray) -> np.ndarray:
        """What the model made of a span: bool (n,)."""
        if self.own[k]:
            return np.zeros(len(self.output), bool)
        attended = self._attended(*self.tokens[k]) & is_free
        copy = attended.copy()
        for span, is_kept in zip(self.given, self.is_kept, strict=True):
            if not is_kept and attended[span.start : span.stop].any():
                copy[span.start : span.stop] = True
        copy &= is_free
        if copy.any():  # a model may write the number of `5 km` with little attention
            stop = int(copy.argmax())
            stop += self._byte(stop) == b" "
            word = f" {re.sub(' .*', '', self.spans[k])} ".encode()
            before = b" " + self.output[:stop]
            if before.endswith(word):
                copy[len(before) - len(word) : stop] = True
        return copy & is_free

    def _bounds(self, k: int, copy: np.ndarray) -> tuple[int, int]:
        """The first byte of a copy, and the byte after it; without one, that of a gap twice."""
        if copy.any():
            return int(copy.argmax()), len(copy) - int(copy[::-1].argmax())
        first, stop = self.tokens[k]
        before, after = self.weights[:, :first].sum(axis=1), self.weights[:, stop:].sum(axis=1)
        left = np.append(np.float32(0), np.cumsum(before))
        right = np.append(np.cumsum(after[::-1])[::-1], np.float32(0))
        gap = int(self.ends[np.where(self._is_gap, left + right, -1).argmax()])
        return gap, gap

    @functools.cached_property
    def _is_gap(self) -> list[bool]:
        """Whether a span may stand at each of `ends`, (T + 1,)."""
        gaps = {0, *(gap.start() for gap in re.finditer(_GAP, self.output))}
        return [end in gaps and self._is_outside(end) for end in self.ends.tolist()]

    def _is_outside(self, place: int) -> bool:
        """Whether a place between bytes is outside of all given spans."""
        return not any(span.start < place < span.stop for span in self.given)

    def _attended(self, first: int, stop: int) -> np.ndarray:
        """The first run of bytes with most attention to some tokens: bool (n,)."""
        of_bytes = self._attention(first, stop)
        high = of_bytes > ATTENDED
        best = int(np.where(high, of_bytes, -1).argmax()) if high.any() else 0
        run = np.cumsum(~high)
        return high & (run == run[best : best + 1])

    def _enclose_contents(
        self, copies: Sequence[np.ndarray], start: list[int], stop: list[int]
    ) -> None:
        """Puts the tags of elements without copies on both sides of what became of the content."""
        for k, opening in enumerate(self.opening):
            if opening >= 0:
                sides = self._content(self.tokens[opening][1], self.tokens[k][0])
                if all(map(self._is_outside, sides)):
                    for tag, side in zip((opening, k), sides, strict=False):
                        if not copies[tag].any():
                            start[tag] = stop[tag] = side

    def _content(self, first: int, stop: int) -> tuple[int, ...]:
        """The first byte that the model made of some tokens, and the byte after the last one.

        Without any, the result is empty.
        """
        of_bytes = self._attention(first, stop)
        weight = np.where(self.is_letter, 1, np.where(self.is_space, 0, OF_MARKS))
        weighted = of_bytes * weight.astype(np.float32)
        if not (weighted > 0).any():
            return ()
        is_best = weighted == weighted.max()
        gain = np.where(self.is_space, 0, of_bytes - np.float32(ATTENDED)) + is_best
        total, peak = np.cumsum(gain, dtype=np.float32), int(is_best.argmax())
        before = np.append(np.float32(0), total)[: peak + 1]
        return peak - int(before[::-1].argmin()), peak + int(total[peak:].argmax()) + 1

    def _attention(self, first: int, stop: int) -> np.ndarray:
        """The share of attention of each byte to some tokens, the mean over words: float32 (n,)."""
        values = self.weights[:, first:stop].sum(axis=1)[self.token]
        total = np.zeros(len(values), np.float32)
        np.add.at(total, self.word, values)
        counts = np.maximum(np.bincount(self.word, minlength=len(values)), 1)
        return (total / counts.astype(np.float32))[self.word]

    def _nested(self, start: list[int]) -> tuple[list[int], list[int]]:
        """The places of spans, and their order there; tags nest if they do in the source."""
        order = sorted(range(len(start)), key=start.__getitem__)
        if is_well_formed([self.spans[k] for k in order]) or not is_well_formed(self.spans):
            return start, order
        pairs = [(opening, k) for k, opening in enumerate(self.opening) if opening >= 0]
        ranges = [(start[opening], max(start[opening], start[k])) for opening, k in pairs]
        at, other = list(start), list(range(len(start)))
        for (opening, k), (first, last) in zip(pairs, ranges, strict=True):
            last = min([last, *(begin for begin, end in ranges if first < begin < last < end)])
            at[k] = last - (self._byte(last - 1) == b" " and first < last - 1)
            other[k], other[opening] = opening, k

        def rank(k: int) -> tuple[int, ...]:
            """At a place, elements end, the inner ones first; then others begin, the outer ones."""
            reach = at[other[k]]
            side = (reach > at[k]) - (reach < at[k])
            return at[k], side, -reach, -other[k] if side < 0 else 0

        return at, sorted(range(len(start)), key=rank)

    def _spaced(self, k: int, start: int, stop: int) -> str:
        """A span with its spaces, for a place between two bytes."""
        if self.own[k]:
            return self.spans[k]
        before, after = self._had_space(self.wanted[k])
        before = before and self._byte(start - 1) not in b" ("
        after = after and self._byte(stop) not in CLOSING_MARKS
        return " " * before + self.spans[k] + " " * after

    def _had_space(self, span: Span) -> tuple[bool, bool]:
        """Whether spaces stand before and behind a tag of the source; other spans have both."""
        if not is_tag(span.text):
            return True, True
        before, after = self.source[: span.start][-1:], self.source[span.stop :][:1]
        return before in b" ", after in b" "  # or no byte

    def _byte(self, place: int) -> bytes:
        """The byte at a place, or none."""
        return self.output[max(place, 0) : place + 1]


def with_own_spaces(source: str, wanted: Sequence[Span], output: str, given: Sequence[Span]) -> str:
    """The output with the white space of the source between tags that touch each other in both.

    Nothing but white space stands between two such tags.
    """
    places = {key: k for k, key in enumerate(_numbered(wanted)) if is_tag(key[0])}
    at = [*(places.get(key, -2) for key in _numbered(given)), 0]
    (start, *own), there = _between(output, given), _between(source, wanted)
    result = [start]
    for span, space, before, after in zip(given, own, at, at[1:], strict=False):
        follows = before >= 0 and after == before + 1
        is_blank = follows and re.fullmatch(f"{WHITE_SPACE}*", space + there[after])
        result += [span.text, there[after] if is_blank else space]
    return "".join(result)


def _between(text: str, spans: Sequence[Span]) -> list[str]:
    """The parts of a string before, between and behind its spans."""
    content = text.encode()
    starts, stops = [0, *(x.stop for x in spans)], [*(x.start for x in spans), len(content)]
    return [content[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]


def _numbered(spans: Iterable[Span]) -> list[tuple[str, int]]:
    """The text of each span, and the number of equal spans before it."""
    counts, result = Counter[str](), []
    for span in spans:
        result.append((span.text, counts[span.text]))
        counts[span.text] += 1
    return result
