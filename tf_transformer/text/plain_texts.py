"""Texts to ids and back without TensorFlow, for programs that run beside an exported folder.

`inference/search_texts.py` does the same on tensors. Both take their rules from the other files of
this folder, and tests compare their results.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.text.capitals import form_of, is_short_word, sentence
from tf_transformer.text.codec import Codec, reading_codec
from tf_transformer.text.normalization import clean, has_letters, is_blank
from tf_transformer.text.special_ids import EOS_ID
from tf_transformer.text.splitting import (
    CLAUSE_MARKS,
    MARK,
    WORD_MARKS,
    Marks,
    SentenceSplitter,
    marked,
)
from tf_transformer.text.target_tag import split_tag, wrong_tag

FULL_WIDTH_ENDS = "。！？｡」』”’）"  # no space follows them
REQUIRED = "required"  # as `target_tag`: each text has its own


class Source(NamedTuple):
    """A text for a search."""

    ids: list[int]  # with the end token; [] for a text without a search
    copy: str  # the translation of a text without a search
    form: Callable[[str], str] | None  # what puts a translation in the case of the text


class Part(NamedTuple):
    """A part of a text, and the white space behind it."""

    text: str
    after: str


class PlainTexts:
    """The texts of translations, as a `Translator` reads and writes them.

    Args:
        codec: the tokenizers.
        options: options of the search and of its task by name, as in the metadata of an export. It
            has `max_source_length`; others that are missing have their defaults.

    Example:
        >>> from tf_transformer.text.tokenizer import Tokenizer
        >>> tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
        >>> texts = PlainTexts(Codec(tokenizer), {"max_source_length": 9, "lower_capitals": True})
        >>> source = texts.read("A HOUSE")
        >>> source.ids == tokenizer.encode("A house"), texts.written([source.ids], source)
        (True, ['A HOUSE'])
    """

    def __init__(self, codec: Codec, options: Mapping[str, Any]):
        self.codec = codec
        self.longest = options["max_source_length"]
        self.lowers = options.get("lower_capitals", False)
        self.copies = options.get("copy_without_letters", False)
        self.divides = options.get("split", "none") != "none"
        tag = options.get("target_tag", "")
        self.needs_tag = tag == REQUIRED
        self.tags = codec["source"].tags
        self._reader = reading_codec(
            *(codec, "source", options.get("punctuation", "kept"), "" if self.needs_tag else tag)
        )
        self._splitter = SentenceSplitter(options.get("split_language", ""))
        trained = options.get("trained_source_length") or self.longest
        self._room = min(self.longest, trained) - 1 - bool(self.tags)

    def require_tags(self, texts: Iterable[str]) -> None:
        """Raises an `InputError` for a text with a wrong target tag, or without a tag it needs."""
        names = ", ".join(sorted(self.tags))
        for text in map(clean, texts if self.tags else ()):
            if (wrong := wrong_tag(text, self.tags)) is not None:
                raise InputError(f"unknown target tag {wrong!r:.60}; this model has {names}.")
            if self.needs_tag and not is_blank(text) and not split_tag(text, self.tags)[0]:
                raise InputError(
                    f"expected a target tag at the start of each text, one of {names}; got "
                    f"{text!r:.60}."
                )

    def read(self, text: str) -> Source:
        """Prepares a text for a search."""
        tag, rest = self._without_tag(text)
        form = form_of(rest) if self.lowers else None
        ids = self._cut(self._ids(tag, sentence(rest) if form else rest)) if rest else []
        is_copied = self.copies and rest != "" and not has_letters(rest)
        is_copied |= self.lowers and is_short_word(rest)
        is_searched = len(ids) > 1 and not is_copied
        return Source(ids if is_searched else [], rest if is_copied else "", form)

    def read_pair(self, text: str, translation: str) -> tuple[list[int], list[int]]:
        """The ids of a text and of its given translation, each with the end token."""
        tag, rest = self._without_tag(text)
        if self.lowers and form_of(rest):
            rest, translation = sentence(rest), sentence(translation)
        target = self.codec.encode("target", translation)
        return self._cut(self._ids(tag, rest)), self._cut(target)

    def written(self, hypotheses: Iterable[Sequence[int]], source: Source) -> list[str]:
        """The texts of hypotheses, which are ids, for a source."""
        form = source.form or str
        return [form(self.codec.decode("target", ids)) for ids in hypotheses]

    def parts(self, text: str) -> list[Part]:
        """The parts of a text that are translated apart, each with its target tag."""
        if not self.divides:
            return [Part(text, "")]
        tag, rest = split_tag(clean(text), self.tags)
        sentences = _in_pairs([*self._splitter.split(rest), ""])
        parts = itertools.chain.from_iterable(map(self._short, sentences))
        return [Part(f"{tag} {text}" if tag else text, after) for text, after in parts]

    def _without_tag(self, text: str) -> tuple[str, str]:
        """The tag of a text, and the rest, "" for a text without a word."""
        text = clean(text)
        tag, rest = split_tag("" if is_blank(text) else text, self.tags)
        return (tag, rest) if rest else ("", "")

    def _ids(self, tag: str, text: str) -> list[int]:
        return self._reader.encode("source", tag + text)

    def _cut(self, ids: list[int]) -> list[int]:
        return ids if len(ids) <= self.longest else [*ids[: self.longest - 1], EOS_ID]

    def _count(self, text: str) -> int:
        """The number of tokens of a text without the end token, at most one more than has room."""
        tag, rest = self._without_tag(text)
        form = form_of(rest) if self.lowers else None
        return min(len(self._ids(tag, sentence(rest) if form else rest)) - 1, self.longest)

    def _short(self, part: Part) -> list[Part]:
        """A part, divided at clauses or words if it has more tokens than a search has room for."""
        if 2 * len(part.text.encode()) < self._room or self._count(part.text) <= self._room:
            return [part]
        size, units = max(1, self._room // 2), list[Part]()
        for clause in _divided(part, CLAUSE_MARKS):
            is_long = self._count(clause.text) > size
            units += _divided(clause, WORD_MARKS) if is_long else [clause]
        counts = [self._count(text) for text, _ in units]
        groups = [start // size for start in itertools.accumulate(counts, initial=0)]
        shorter = [units[0]]
        for place, unit in enumerate(units[1:], 1):
            ends = groups[place] != groups[place - 1] or max(counts[place - 1 : place + 1]) > size
            if ends:
                shorter.append(unit)
            else:
                before = shorter.pop()
                shorter.append(Part(before.text + before.after + unit.text, unit.after))
        return shorter


def _divided(part: Part, marks: Marks) -> list[Part]:
    """The parts of a part, between the spaces that `marks` find."""
    return _in_pairs([*marked(part.text, marks).split(MARK), part.after])


def _in_pairs(pieces: Sequence[str]) -> list[Part]:
    """Parts from text, space, text, space, and so on."""
    return list(map(Part, pieces[::2], pieces[1::2]))


class Scored(NamedTuple):
    """A translation and its score, the log-probability divided by the length penalty."""

    text: str
    score: float


def joined(parts: Sequence[Part], rows: Sequence[Sequence[Scored]]) -> list[Scored]:
    """The translations of a text, from those of its parts, best first.

    A part that has fewer translations than others gives its last one. The score is the mean over
    the parts that are not empty. After a part without white space behind it, as in Chinese, stands
    a space if its translation does not end with a full-width mark.
    """
    result = []
    for place in range(max(map(len, rows))):
        chosen = [row[min(place, len(row) - 1)] for row in rows]
        scores = [x.score for x, part in zip(chosen, parts, strict=True) if part.text]
        spaced = [
            text + (after or _space_behind(text) * (number < len(parts) - 1))
            for number, ((text, _), (_, after)) in enumerate(zip(chosen, parts, strict=True))
        ]
        result.append(Scored("".join(spaced), sum(scores) / max(1, len(scores))))
    return result


def _space_behind(text: str) -> str:
    return " " if text and text[-1] not in FULL_WIDTH_ENDS else ""
