"""A synthetic corpus: a text and its translations by a model, as training text of another model."""

import json
import os
import pathlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.files.writing import write_whole
from tf_transformer.text.normalization import is_blank


@dataclass(frozen=True)
class Translation:
    """A line of a text and its translation, as `SyntheticCorpus.translations` stores it.

    Attributes:
        source: the line.
        target: its translation.
        score: mean log-probability of the tokens of the translation, nats.
        length_ratio: tokens of the longer side per token of the shorter side.
        problem: the reason why this is no whole translation of the line; "" without one.
    """

    source: str
    target: str
    score: float
    length_ratio: float
    problem: str = ""

    def to_json(self) -> str:
        """The translation as a line of JSON, without the newline."""
        return json.dumps(self.__dict__, ensure_ascii=False)


class Limits(NamedTuple):
    """Limits of the translations that a corpus keeps; see `Translation`.

    Example:
        >>> limits = Limits(min_score=-2.0, max_ratio=3.0)
        >>> limits.reason_to_drop(Translation("a house", "ein Haus", -2.5, 1.0))
        'score below -2'
    """

    min_score: float
    max_ratio: float

    def reason_to_drop(self, translation: Translation) -> str:
        """The reason to drop a translation; "" to keep it."""
        if translation.problem:
            return translation.problem
        if is_blank(translation.source) or is_blank(translation.target):
            return "empty"
        if translation.length_ratio > self.max_ratio:
            return f"length ratio above {self.max_ratio:g}"
        return f"score below {self.min_score:g}" if translation.score < self.min_score else ""


class SyntheticCorpus:
    """The files of a synthetic corpus in a folder; each may be missing.

    Attributes:
        translations: each line of the text with its translation, JSON lines of `Translation`.
        pairs: the translations within the limits, a corpus of the format jsonl.
        card: the origin of the translations, the limits, and the numbers of lines, JSON.

    Example:
        >>> SyntheticCorpus("runs/small/distillation").pairs.as_posix()
        'runs/small/distillation/pairs.jsonl'
    """

    def __init__(self, folder: str | os.PathLike):
        self.translations = pathlib.Path(folder, "translations.jsonl")
        self.pairs = pathlib.Path(folder, "pairs.jsonl")
        self.card = pathlib.Path(folder, "card.json")

    def begin(self, origin: Mapping[str, str]) -> None:
        """Stores what the translations depend on.

        An `InputError` says that the folder has translations that depend on something else, or
        files of another program.

        Args:
            origin: identities of text and model, and options, by name.
        """
        files = [x for x in (self.translations, self.pairs, self.card) if x.exists()]
        if files and not (before := self._origin()):
            raise InputError(
                f"{files[0]} is not a file of this command, but its name is needed for one. Move "
                "it away, or give another folder."
            )
        if self.translations not in files:
            self._write_card({"origin": origin})
        elif names := [x for x in {**before, **origin} if before.get(x) != origin.get(x)]:
            raise InputError(
                f"{self.translations} are translations of another text, model or search: other "
                f"values of {', '.join(sorted(names))}. Give the same ones, or another folder."
            )

    def select(self, limits: Limits) -> str:
        """Writes the pairs within the limits, and the card; returns a summary for people.

        An `InputError` says that no pair is within the limits.
        """
        kept, dropped = 0, Counter[str]()
        partial = self.pairs.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            for line in read_lines(self.translations):
                translation = Translation(**json.loads(line))
                if reason := limits.reason_to_drop(translation):
                    dropped[reason] += 1
                else:
                    kept += 1
                    pair = {"source": translation.source, "target": translation.target}
                    file.write(json.dumps(pair, ensure_ascii=False) + "\n")
        partial.replace(self.pairs)
        counts = {"kept": kept, "dropped": dict(dropped)}
        self._write_card({"origin": self._origin(), "limits": limits._asdict(), **counts})
        reasons = "".join(f", {count:,} dropped ({why})" for why, count in dropped.most_common())
        if not kept:
            raise InputError(
                f"no translation in {self.translations} is within the limits: 0 pairs{reasons}. "
                "Give a lower min_score, or a higher max_ratio."
            )
        return f"{kept:,} pairs{reasons}"

    def _origin(self) -> dict[str, str]:
        """What the translations depend on; {} without a card, or with one of another program."""
        try:
            return dict(json.loads(self.card.read_text("utf-8"))["origin"])
        except (OSError, ValueError, LookupError, TypeError):
            return {}

    def _write_card(self, content: Mapping[str, Any]) -> None:
        write_whole(self.card, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
