"""Examples: named texts, in memory or as a stream.

An example has one text for each field. In a translation corpus, the fields are source and target.
"""

import functools
import hashlib
import heapq
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from tf_transformer.errors import InputError

Item = TypeVar("Item")
Texts = tuple[str, ...]  # the texts of one example, in the order of the fields
NOT_UTF8 = "not UTF-8"
EMPTY = "empty text"
MANY = 0.1  # share of skipped examples above which there is a warning


@dataclass(frozen=True)
class Examples:
    """Examples in memory.

    Attributes:
        texts: by field, the texts of all examples. All lists have the same length.
        skipped: number of skipped examples, by reason.
        parts: number of examples of each corpus by its name, in order; {} for one corpus.

    Example:
        >>> examples = Examples({"source": ["one", "two"], "target": ["eins", "zwei"]})
        >>> examples["target"], len(examples)
        (['eins', 'zwei'], 2)
    """

    texts: Mapping[str, list[str]]
    skipped: Counter[str] = field(default_factory=Counter)
    parts: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.texts.values())))

    def __getitem__(self, name: str) -> list[str]:
        return self.texts[name]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the texts."""
        return tuple(self.texts)

    def take(self, indices: Iterable[int]) -> "Examples":
        """Selects the examples at `indices`, in this order."""
        indices = list(indices)
        return Examples({name: [texts[i] for i in indices] for name, texts in self.texts.items()})

    def by_corpus(self) -> dict[str, "Examples"]:
        """The examples of each corpus by its name; "" for one corpus without a name."""
        sizes = self.parts.values()
        ends = itertools.accumulate(sizes)
        ranges = (range(end - size, end) for size, end in zip(sizes, ends, strict=True))
        return dict(zip(self.parts, map(self.take, ranges), strict=True)) or {"": self}

    def stream(self) -> "ExampleStream":
        """Makes a stream of these examples."""

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            skipped.update(self.skipped)
            return zip(*self.texts.values(), strict=True)

        def identify() -> str:
            content = hashlib.sha256()
            for texts in self.texts.values():
                for text in texts:
                    content.update(text.encode("utf-8", "surrogatepass") + b"\n")
            return content.hexdigest()

        return ExampleStream(self.fields, start, identify)


@dataclass(frozen=True)
class ExampleStream:
    """Examples that each pass reads again. They are never in memory together."""

    fields: tuple[str, ...]  # names of the texts of an example
    # Starts a pass over tuples of texts, in the order of the fields. It takes a counter, and counts
    # skipped examples there by reason.
    start: Callable[[Counter[str]], Iterable[Texts]]
    identify: Callable[[], str]  # computes `identity`; may read all texts
    parts: tuple["Part", ...] = ()  # of a text of several corpora, or of one with a tag

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "ExampleStream":
        """Joins the examples of corpora, in order and without their tags."""

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            return itertools.chain.from_iterable(part.stream.start(skipped) for part in parts)

        def identify() -> str:
            return "corpora " + "; ".join(part.identity for part in parts)

        return cls(parts[0].stream.fields, start, identify, tuple(parts))

    @property
    def tags(self) -> list[str]:
        """The tags of the corpora, sorted."""
        return sorted({part.tag for part in self.parts if part.tag})

    @property
    def tagged(self) -> Iterable[Texts]:
        """The examples with the tags of their corpora, as a model reads them."""
        parts = (part.tagged for part in self.parts)
        return itertools.chain.from_iterable(parts) if self.parts else self

    @functools.cached_property
    def identity(self) -> str:
        """A text that identifies the content. It does not depend on where the texts are stored."""
        return self.identify()

    def __iter__(self) -> Iterator[Texts]:
        return iter(self.start(Counter()))

    def read(self) -> Examples:
        """Reads all examples into memory, with their tags."""
        skipped = Counter[str]()
        columns: list[list[str]] = [[] for _ in self.fields]
        sizes = {}
        for part in self.parts or [Part("", self)]:
            before = len(columns[0])
            for texts in part.tagged.start(skipped):
                for column, text in zip(columns, texts, strict=True):
                    column.append(text)
            sizes[part.name] = len(columns[0]) - before
        texts_by_field = dict(zip(self.fields, columns, strict=True))
        return Examples(texts_by_field, skipped, sizes if self.parts else {})

    def hold_out(
        self, count: int, seed: int, by_target: bool = False
    ) -> tuple["ExampleStream", Examples]:
        """Splits off `count` distinct validation texts by the first field: training, validation.

        Examples with the same first text stay together, so no validation text is in the training
        data. `by_target`: the second texts of validation examples are not in the training data,
        either: a first text that shares one stays in the training data.

        The texts with the smallest seeded hashes are held out. They are at most a tenth of the
        distinct texts, and have at most a tenth of the examples. A text that would exceed this
        limit stays in the training data. If every text exceeds it, the rarest text is held out,
        with a warning. Fewer than two distinct texts are an `InputError`.
        """
        hashes = (_seeded_hash(texts[0], seed) for texts in self)
        smallest, total = _smallest_distinct(hashes, 10 * count)  # at most a tenth, or `count`
        most = max(1, min(count, len(smallest) // 10))
        if len(smallest) < 2:
            raise InputError(
                "validation examples cannot be held out of fewer than 2 distinct texts "
                f"({self.fields[0]}); give more text, or data.valid_source and data.valid_target."
            )
        if by_target:
            own = self._with_own_targets(smallest, seed)
            if not own:
                print(
                    "warning: each target that is held out for validation is in the training text, "
                    "too, because all targets have several sources. Give separate validation text.",
                    file=sys.stderr,
                )
            smallest = own or smallest
        chosen = _within(smallest, most, total // 10)
        if not chosen:
            chosen = {min(smallest, key=lambda value: (smallest[value], value))}
            print(
                f"warning: {smallest[max(chosen)]:,} of {total:,} examples are held out for "
                "validation, more than a tenth, because no text occurs less often. Give more text, "
                "or separate validation text.",
                file=sys.stderr,
            )
        name = f"{hashlib.sha256(repr(sorted(chosen)).encode()).hexdigest()} {seed}"
        train = self._where(lambda text: _seeded_hash(text, seed) not in chosen, f"not {name}")
        valid = self._where(lambda text: _seeded_hash(text, seed) in chosen, name)
        return train, replace(valid.read(), skipped=Counter())

    def _with_own_targets(self, sizes: Mapping[int, int], seed: int) -> dict[int, int]:
        """The groups of first texts, by hash, whose second texts no other first text has."""
        owners: dict[int, int] = {}  # hashes of first texts, by hashes of second texts
        for source, target in self:
            if (owner := _seeded_hash(source, seed)) in sizes:
                owners[_seeded_hash(target, seed)] = owner
        shared = set()
        for source, target in self:
            known = owners.get(_seeded_hash(target, seed))
            if known is not None and (other := _seeded_hash(source, seed)) != known:
                shared |= {known, other}
        return {value: size for value, size in sizes.items() if value not in shared}

    def _where(self, keep: Callable[[str], bool], condition: str) -> "ExampleStream":
        """Selects examples by their first text; `condition` becomes part of the identity."""

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            return (texts for texts in self.start(skipped) if keep(texts[0]))

        parts = (part._replace(stream=part.stream._where(keep, condition)) for part in self.parts)
        return ExampleStream(
            self.fields, start, lambda: f"{self.identity} {condition}", tuple(parts)
        )


class Part(NamedTuple):
    """The examples of one corpus of a text."""

    name: str  # for people; no two parts of a text have the same
    stream: ExampleStream  # without the tag
    tag: str = ""  # before the first text of each example
    weight: float = 1.0  # how often an epoch of a training has each example

    @property
    def tagged(self) -> ExampleStream:
        """The examples with the tag, as a model reads them."""
        if not self.tag:
            return self.stream

        def start(skipped: Counter[str]) -> Iterator[Texts]:
            return ((f"{self.tag} {first}", *rest) for first, *rest in self.stream.start(skipped))

        return ExampleStream(
            self.stream.fields, start, lambda: f"{self.stream.identity} tag {self.tag}"
        )

    @property
    def identity(self) -> str:
        """A text that identifies the content, and what a training run makes of it."""
        return self.tagged.identity + f" weight {self.weight:g}" * (self.weight != 1)


def _seeded_hash(text: str, seed: int) -> int:
    """Hashes a text to 64 bits, which are the same in every process."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest(), "big")


def _smallest_distinct(values: Iterable[int], count: int) -> tuple[dict[int, int], int]:
    """Counts the `count` smallest distinct values, smallest first, and all values."""
    kept = Counter[int]()
    bound = None
    total = 0
    for value in values:
        total += 1
        if bound is None or value <= bound:
            kept[value] += 1
            if len(kept) > 3 * count:
                kept = Counter({value: kept[value] for value in heapq.nsmallest(count, kept)})
                bound = max(kept)
    return {value: kept[value] for value in heapq.nsmallest(count, kept)}, total


def _within(sizes: Mapping[int, int], count: int, limit: int) -> set[int]:
    """Selects the first `count` groups. A group that would exceed `limit` examples is left out."""
    chosen: set[int] = set()
    for value, size in sizes.items():
        if len(chosen) < count and size <= limit:
            chosen.add(value)
            limit -= size
    return chosen


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


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Draws a sample from all parts of a sequence, in its order.

    One item of each of `count` equal parts is drawn at random. The first items would be the
    shortest texts of a sorted file, or the texts of one corpus. The places depend only on `count`
    and on the number of items, so all columns of a table give the same rows, and so do all
    processes.
    """
    import numpy as np  # --help does without

    count = min(count, len(items))
    ends = np.arange(count + 1) * len(items) // max(count, 1)
    return [items[place] for place in np.random.default_rng(0).integers(ends[:-1], ends[1:])]
