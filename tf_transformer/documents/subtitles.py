"""SubRip (.srt): the texts of cues. A sentence may run over several cues."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tf_transformer.documents.document import Document, Options, written
from tf_transformer.documents.segments import Code, Item, Segment, without_layout
from tf_transformer.errors import InputError

_TIME = r"(\d+):(\d\d):(\d\d)[,.](\d{1,3})"
_CUE = re.compile(
    rf"^(?:[ \t]*\d+[ \t]*\r?\n)?[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\r\n]*\r?$", re.MULTILINE
)
_TEXT = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)
_CODE = re.compile(r"(</?[A-Za-z][^>]*>|\{\\[^}]*\}|^[-–—][ \t]*)")
_TAG = re.compile(r"<(/?)(\w+)[^>]*>")
_SPEAKER = re.compile(r"\n(?=\s*(?:<[^>]*>|\{\\[^}]*\})*[-–—])")
_PAUSE = 1500  # milliseconds: the longest between two cues of one sentence
_END = re.compile(r"""[.!?…:。！？♪♫)\]]["'”’»]*$""")
_START = re.compile(r"[-–—(\[♪♫#>]")
_NOTHING = "…"  # the text of a cue when a translation has fewer words than cues


@dataclass
class _Turn:
    """What one speaker says in one cue."""

    source: str

    def __post_init__(self) -> None:
        lines = [list(_items(line.strip())) for line in self.source.split("\n")]
        self.lengths = [sum(len(x) for x in line if isinstance(x, str)) for line in lines]
        items = [item for line in lines for item in (" ", *line)][1:]
        self.before, self.inside, self.after = without_layout(items)
        self.target = self.source

    def translate(self, lines: Sequence[str], newline: str) -> None:
        """Takes the lines of the translation."""
        text = newline.join(filter(None, lines)) or _NOTHING
        self.target = written([*self.before, text, *self.after], str)


def read_srt(content: str, options: Options) -> Document:
    """Reads the cues of subtitles. Numbers, times and the count of lines stay.

    Cues are joined while no sentence ends and the pause is short. Their translation is divided
    between words, in proportion to the lengths of the lines.
    """
    cues = list(_CUE.finditer(content))
    if not cues:
        raise InputError("it has no cue, such as 00:00:01,000 --> 00:00:02,500. Check the file.")
    newline = "\r\n" if "\r\n" in content else "\n"
    parts: list[str | _Turn] = [content[: cues[0].start()]]
    groups, end, runs_on = list[list[_Turn]](), 0, False
    for cue, stop in zip(cues, [*(x.start() for x in cues[1:]), len(content)], strict=True):
        before, text, after = _TEXT.fullmatch(content[cue.end() : stop]).groups()  # type: ignore[union-attr]
        plain = _CODE.sub("", text)
        runs_on = runs_on and _milliseconds(cue, 1) - end <= _PAUSE and not _START.match(text)
        parts += [cue[0], before]
        for place, source in enumerate(_SPEAKER.split(text)):
            turn = _Turn(source)
            parts += ["\n" * bool(place), turn]
            if not turn.inside:
                continue
            if place or not (runs_on and groups):
                groups.append([])
            groups[-1].append(turn)
        parts.append(after)
        end, runs_on = _milliseconds(cue, 5), bool(plain) and not _END.search(plain)
    segments = [
        Segment([item for turn in group for item in (" ", *turn.inside)][1:]) for group in groups
    ]

    def write(translations: Sequence[Sequence[Item]]) -> bytes:
        for group, segment, items in zip(groups, segments, translations, strict=True):
            if items != segment.items:
                lines = iter(divided(items, [n for turn in group for n in turn.lengths]))
                for turn in group:
                    turn.translate([next(lines) for _ in turn.lengths], newline)
        return "".join(x if isinstance(x, str) else x.target for x in parts).encode()

    return Document(segments, write)


def divided(items: Sequence[Item], weights: Sequence[int]) -> list[str]:
    """The text in a part for each weight, of lengths in proportion, divided at spaces.

    A division is outside of pairs of codes if there are enough spaces. A text in wide
    characters without spaces is divided between them. A part is "" if there are not enough places.

    Example:
        >>> divided(["He left, and nobody saw him again."], [8, 20])
        ['He left,', 'and nobody saw him again.']
    """
    text, length, depth = "", 0, 0
    places: list[tuple[int, int, int]] = []  # depth of pairs, length so far, index in the text
    for item in items:
        if isinstance(item, Code):
            depth += (item.kind == "open") - (item.kind == "close")
            text += item.content
            continue
        for character in item:
            if character == " " and length:
                places.append((depth, length, len(text)))
            text, length = text + character, length + 1
    if not places and len(text) == length and any(map(_is_wide, text)):
        places = [(0, n, n) for n in range(1, length)]
    outside = [place for place in places if place[0] <= 0]
    places = outside if len(outside) >= len(weights) - 1 else places
    parts, start, first = list[str](), 0, 0
    for number in range(1, len(weights)):
        ideal = length * sum(weights[:number]) / max(1, sum(weights))
        last = max(first + 1, len(places) - (len(weights) - 1 - number))  # leaves places for others
        choice = range(first, min(last, len(places)))
        best = min(choice, key=lambda n: abs(places[n][1] - ideal), default=None)
        stop = start if best is None else places[best][2]
        parts.append(text[start:stop].strip())
        start, first = stop, first if best is None else best + 1
    return [*parts, text[start:].strip()]


def _items(line: str) -> Iterator[Item]:
    for place, part in enumerate(_CODE.split(line)):
        tag = _TAG.fullmatch(part)
        if place % 2 and tag:
            yield Code("close" if tag[1] else "open", part, tag[2])
        else:
            yield Code("alone", part) if place % 2 else part


def _is_wide(character: str) -> bool:
    """Whether a character is of a script without spaces between words, such as Chinese."""
    return unicodedata.east_asian_width(character) in "WF"


def _milliseconds(cue: re.Match, group: int) -> int:
    """A time of a cue, whose first group is given."""
    hours, minutes, seconds, fraction = cue.groups()[group - 1 : group + 3]
    return 1000 * (3600 * int(hours) + 60 * int(minutes) + int(seconds)) + int(
        fraction.ljust(3, "0")
    )
