"""Texts to ids and back without TensorFlow, for programs that run beside an exported folder.

`inference/search_texts.py` does the same on tensors. Both take their rules from the other files of
this folder, and tests compare their results.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.text.capitals import form_of, is_short_word, sentence
from tf_transformer.text.codec import Codec, reading_codec
from tf_transformer.text.normalization import clean, has_letters, is_blank
from tf_transformer.text.plain_kept import PlainKeptSpans
from tf_transformer.text.plain_places import Drawn
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


Attend = Callable[[Sequence[int], Sequence[int]], np.ndarray]
"""The attention, float32 (T, S), of a translation's ids to those of its source."""


class Source(NamedTuple):
    """A text for a search."""

    text: str  # with its tag; "" for a text without a word
    ids: list[int]  # with the end token; [] for a text without a search
    copy: str  # the translation of a text without a search
    form: Callable[[str], str] | None  # what puts a translation in the case of the text


class Part(NamedTuple):
    """A part of a text, and the white space behind it."""

    text: str
    after: str
    tag: str = ""  # that of the whole text, with a space, if it was divided


class Scored(NamedTuple):
    """A translation and its score, the log-probability divided by the length penalty."""

    text: str
    score: float


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
        self._default_tag = "" if self.needs_tag else tag
        self._reader = reading_codec(
            *(codec, "source", options.get("punctuation", "kept"), self._default_tag)
        )
        self.kept = PlainKeptSpans(options.get("keep", ()), options.get("keep_as", "text"))
        self._splitter = SentenceSplitter(options.get("split_language", ""), self.kept.pattern)
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
        text, rest = self._cleaned(text)
        ids = self._cut(self._ids(self.kept.hidden(text))) if rest else []
        alone = self.kept.without_spans(rest)
        is_copied = rest != "" and (self.copies or alone != rest) and not has_letters(alone)
        is_copied |= self.lowers and is_short_word(alone)
        is_searched = len(ids) > 1 and not is_copied
        ids, copy = ids if is_searched else [], rest if is_copied else ""
        return Source(text, ids, copy, self._form(rest))

    def read_pair(self, text: str, translation: str) -> tuple[list[int], list[int]]:
        """The ids of a text and of its given translation, each with the end token."""
        text, rest = self._cleaned(text)
        translation = sentence(translation) if self._form(rest) else translation
        return self._cut(self._ids(text)), self._cut(self.codec.encode("target", translation))

    def written(
        self, hypotheses: Iterable[Sequence[int]], source: Source, attend: Attend | None = None
    ) -> list[str]:
        """The texts of hypotheses, which are ids, for a source.

        They have the kept spans of its text. Without `attend`, they have what the model wrote.
        """
        return [self._with_spans(ids, source, attend) for ids in hypotheses]

    def _with_spans(self, ids: Sequence[int], source: Source, attend: Attend | None) -> str:
        output, (tag, rest) = self._drawn(ids, source), split_tag(source.text, self.tags)
        if attend is None or not self.kept.is_wrong(rest, output):
            return output
        sizes = (len(self._drawn(ids[:end], source).encode()) for end in range(len(ids) + 1))
        ends = [min(size, len(output.encode())) for size in itertools.accumulate(sizes, max)]
        weights = attend(source.ids, ids)
        is_text = np.cumsum(np.equal(ids, EOS_ID)) == 0
        drawn = Drawn(output, ends, weights * is_text[:, None].astype(weights.dtype))
        return self.kept.repair(rest, drawn, lambda start: self._count_read(tag, start))

    def _count_read(self, tag: str, start: str) -> int:
        """The number of tokens of a tag and a start of a text, as the search reads them."""
        count = min(len(self._ids(self.kept.hidden(tag + start))), self.longest) - 1
        return max(count, bool(tag or self._default_tag))  # before an empty start, too

    def _drawn(self, ids: Sequence[int], source: Source) -> str:
        """The text of a hypothesis, without repairs."""
        output = (source.form or str)(self.codec.decode("target", ids))
        return self.kept.shown(output, source.text)

    def parts(self, text: str) -> list[Part]:
        """The parts of a text that are translated apart."""
        if not self.divides:
            return [Part(text, "")]
        tag, rest = split_tag(clean(text), self.tags)
        sentences = _in_pairs([*self._splitter.split(rest), ""])
        parts = itertools.chain.from_iterable(map(self._short, sentences))
        return [part._replace(tag=f"{tag} " if tag else "") for part in parts]

    def joined(self, parts: Sequence[Part], rows: Sequence[Sequence[Scored]]) -> list[Scored]:
        """The translations of a text, from those of its parts, best first, with its kept spans.

        A part that has fewer translations than others gives its last one. The score is the mean
        over the parts that are not empty. After a part without white space behind it, as in
        Chinese, stands a space if its translation does not end with a full-width mark.
        """
        result, is_divided = [], sum(part.text != "" for part in parts) > 1
        whole = "".join(part.text + part.after for part in parts)
        for place in range(max(map(len, rows))):
            chosen = [row[min(place, len(row) - 1)] for row in rows]
            scores = [x.score for x, part in zip(chosen, parts, strict=True) if part.text]
            spaced = [
                text + (part.after or _space_behind(text) * (number < len(parts) - 1))
                for number, ((text, _), part) in enumerate(zip(chosen, parts, strict=True))
            ]
            text = "".join(spaced)
            text = self.kept.in_joined(whole, text) if is_divided else text
            result.append(Scored(text, sum(scores) / max(1, len(scores))))
        return result

    def _cleaned(self, text: str) -> tuple[str, str]:
        """A clean text, with and without its tag; both are "" for a text without a word."""
        text = clean(text)
        rest = "" if is_blank(text) else split_tag(text, self.tags)[1]
        return (text, rest) if rest else ("", "")

    def _form(self, text: str) -> Callable[[str], str] | None:
        """What puts a translation in the case of a text without a tag."""
        return form_of(self.kept.without_spans(text)) if self.lowers else None

    def _ids(self, text: str) -> list[int]:
        """The ids of a clean text, which may have a tag."""
        tag, rest = split_tag(text, self.tags)
        return self._reader.encode("source", tag + (sentence(rest) if self._form(rest) else rest))

    def _cut(self, ids: list[int]) -> list[int]:
        return ids if len(ids) <= self.longest else [*ids[: self.longest - 1], EOS_ID]

    def _count(self, text: str) -> int:
        """The number of tokens of a text without the end token, at most one more than has room."""
        return min(len(self._ids(self._cleaned(text)[0])) - 1, self.longest)

    def _short(self, part: Part) -> list[Part]:
        """A part, divided at clauses or words if it has more tokens than a search has room for."""
        if 2 * len(part.text.encode()) < self._room or self._count(part.text) <= self._room:
            return [part]
        size, units = max(1, self._room // 2), list[Part]()
        for clause in self._divided(part, CLAUSE_MARKS):
            is_long = self._count(clause.text) > size
            units += self._divided(clause, WORD_MARKS) if is_long else [clause]
        counts = [self._count(unit.text) for unit in units]
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

    def _divided(self, part: Part, marks: Marks) -> list[Part]:
        """The parts of a part, between the spaces that `marks` find."""
        return _in_pairs([*marked(part.text, marks, self.kept.pattern).split(MARK), part.after])


def _in_pairs(pieces: Sequence[str]) -> list[Part]:
    """Parts from text, space, text, space, and so on."""
    return list(map(Part, pieces[::2], pieces[1::2]))


def _space_behind(text: str) -> str:
    return " " if text and text[-1] not in FULL_WIDTH_ENDS else ""
