r"""Makes a test set of what strangers type: 13 classes of lines from held-out sentences.

    python -m benchmarks.translations.stranger --source test.en --reference test.de \
        --to build/set.jsonl

The classes have the same sentences where they can, so their scores can be compared. A reference
is changed like its source, but for odd spaces, which are in the source only. The emoji, addresses,
numbers and names are spans that `data.augment` never draws. `stranger_scores` scores a run.
"""

import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.data.augmentation import noise, typography
from tf_transformer.data.augmentation.copies import copied, renamed
from tf_transformer.data.augmentation.pairs import END_MARK, Pair, chosen
from tf_transformer.data.readers.text import stream_files
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

WORDS = pathlib.Path(__file__).parent / "words_en_de.tsv"
MOST_WORDS = 25  # of a line that is not long
_ADDRESSES = ("number", "url", "email")
_MARKUP = ("element", "tag")
_SPACES = ("  ", "   ", "\t", "\u00a0")


class Line(NamedTuple):
    """A line of the set.

    Attributes:
        group: name of the class.
        kind: what the line has; a class may have several kinds.
        source: the text to translate.
        target: its reference.
        spans: parts of the reference that the translation must have as they are.
    """

    group: str
    kind: str
    source: str
    target: str
    spans: Sequence[str] = ()


def main(source: str, reference: str, to: str, lines: int = 100, seed: int = 1) -> None:
    """Writes the set as JSON lines, and prints the number of lines of each class.

    Args:
        source: file of sentences that no model has been trained on.
        reference: file of their translations.
        to: file to write; a corpus of the format jsonl.
        lines: number of lines in a class.
        seed: of all draws.

    Raises:
        InputError: if the files have different numbers of lines, or too few sentences for a class.
    """
    pairs = [(one, other) for one, other in stream_files(source, reference)]
    languages = tuple(pathlib.Path(path).suffix[1:] for path in (source, reference))
    rows = list(made(pairs, (languages[0], languages[1]), lines, seed))
    text = "".join(
        json.dumps({"class": group, **line}, ensure_ascii=False) + "\n"
        for group, line in ((row.group, _without_group(row)) for row in rows)
    )
    write_whole(to, text)
    for group in dict.fromkeys(row.group for row in rows):
        print(f"{group}: {sum(row.group == group for row in rows)} lines")


def _without_group(line: Line) -> dict[str, object]:
    return {name: value for name, value in line._asdict().items() if name != "group"}


def read(path: str) -> list[Line]:
    """Reads a set that `main` has written."""
    rows = map(json.loads, first_lines(path, 10**9))
    return [Line(row.pop("class"), **row) for row in rows]


def made(
    pairs: Sequence[Pair], languages: tuple[str, str], count: int, seed: int
) -> Iterator[Line]:
    """Makes `count` lines of each class.

    Args:
        pairs: held-out sentences with their translations.
        languages: codes of the source and target language, for quotation marks.
        count: number of lines in a class.
        seed: seed of all draws.

    Raises:
        InputError: if there are too few sentences for a class.
    """
    rng = np.random.default_rng(seed)
    usable = [pair for pair in pairs if _is_plain(pair)]
    order = [usable[i] for i in rng.permutation(len(usable))]
    if len(order) < 6 * count:
        raise InputError(f"expected {6 * count} plain sentences, got {len(order)}.")
    plain, rest = order[:count], order[count:]
    yield from (Line("plain", "plain", *pair) for pair in plain)
    yield from _several_sentences(rest, count)
    changed = _changed_alike(languages)
    for group, kinds in changed.items():
        for number, pair in enumerate(plain):
            kind = list(kinds)[number % len(kinds)]
            yield Line(group, kind, *kinds[kind](pair, rng))
    for group, kinds in (("emoji", ("emoji",)), ("addresses", _ADDRESSES), ("markup", _MARKUP)):
        for number, pair in enumerate(plain):
            kind = kinds[number % len(kinds)]
            changed_pair, spans = copied(pair, kind, rng, held_out=True)
            yield Line(group, kind, *changed_pair, spans)
    yield from _names("names", "name", order, count, rng)
    yield from _words(languages, count, rng)
    yield from _long(pairs, rest, count)
    yield from _names("names without accents", "name_without_accents", order, count, rng)


def _is_plain(pair: Pair) -> bool:
    """Whether a pair is a sentence of usual length with an end mark on both sides."""
    return all(END_MARK.search(text) and 3 <= len(text.split()) <= MOST_WORDS for text in pair)


def _changed_alike(
    languages: tuple[str, str],
) -> dict[str, dict[str, Callable[[Pair, np.random.Generator], Pair]]]:
    """The classes whose lines are the plain lines with a change, and their kinds."""
    return {
        "case": {
            "upper": typography.upper,
            "title": typography.title,
            "lower": typography.lower,
        },
        "no end mark": {"no end mark": typography.without_end_mark},
        "typographic marks": {"typographic marks": typography.typography_of(*languages)},
        "odd spaces": {"odd spaces": odd_spaces},
    }


def odd_spaces(pair: Pair, rng: np.random.Generator) -> Pair:
    """Puts stray, double, no-break and outer spaces and tabs into the source."""
    source, target = noise.spaces(pair, rng)
    parts = source.split(" ")
    places = set(rng.choice(len(parts) - 1, size=2).tolist())
    spaces = (chosen(_SPACES, rng) if place in places else " " for place in range(len(parts) - 1))
    return "".join(map("".join, zip(parts, [*spaces, ""], strict=True))), target


def _several_sentences(pairs: Sequence[Pair], count: int) -> Iterator[Line]:
    """Half of the lines have two sentences, the others four."""
    sizes = [2] * (count // 2) + [4] * (count - count // 2)
    sentences = iter(pairs)
    for size in sizes:
        sides = zip(*(next(sentences) for _ in range(size)), strict=True)
        yield Line("several sentences", f"{size} sentences", *map(" ".join, sides))


def _names(
    group: str, kind: str, pairs: Sequence[Pair], count: int, rng: np.random.Generator
) -> Iterator[Line]:
    """Lines with a new name in place of one that both sides share.

    A span of the kind "name" is drawn until it has accents.
    """
    lines = []
    for pair in pairs:
        if len(lines) == count:
            break
        new, spans = renamed(pair, rng, held_out=kind)
        while spans and spans[0].isascii() and kind == "name":
            new, spans = renamed(pair, rng, held_out=kind)
        if spans:
            lines.append(Line(group, group, *new, spans))
    if len(lines) < count:
        raise InputError(f"expected {count} sentences with a name on both sides, got {len(lines)}.")
    yield from lines


def _words(languages: tuple[str, str], count: int, rng: np.random.Generator) -> Iterator[Line]:
    """Words of a list, which languages other than English and German do not have."""
    pairs = [tuple(line.split("\t")) for line in first_lines(str(WORDS), 10**9)]
    sides = {("en", "de"): (0, 1), ("de", "en"): (1, 0)}.get(languages)
    if sides:
        for i in rng.permutation(len(pairs))[:count]:
            yield Line("one word", "one word", pairs[i][sides[0]], pairs[i][sides[1]])


def _long(pairs: Sequence[Pair], rest: Sequence[Pair], count: int) -> Iterator[Line]:
    """Long sentences. Where these are too few, sentences are joined by semicolons."""
    long = [pair for pair in pairs if len(pair[0].split()) > MOST_WORDS][:count]
    sentences = itertools.cycle(reversed(rest))
    while len(long) < count:
        source, target = next(sentences)
        while len(source.split()) <= MOST_WORDS:
            following = next(sentences)
            source, target = (
                f"{END_MARK.sub('', text)}; {more}"
                for text, more in zip((source, target), following, strict=True)
            )
        long.append((source, target))
    yield from (Line("long", "long", *pair) for pair in long)


if __name__ == "__main__":
    command_line.run(main)
