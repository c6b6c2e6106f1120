"""Translates with an exported folder without TensorFlow: the texts around the search of a runtime.

The folder has the file of the model, the SentencePiece models, metadata.json, and translate.pyz, a
program:

    python FOLDER/translate.pyz < sentences

It prints one JSON object per line read: {"translation": ..., "score": ...}. In Python, put the
archive on the path of modules:

    sys.path.insert(0, "FOLDER/translate.pyz")
    from tf_transformer.export.run_in_onnx import Model
    print(Model("FOLDER")(["a house"])[0].text)
"""

import argparse
import itertools
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.files.text_lines import STDIN, TextError, chunks_of, lines_of
from tf_transformer.text.codec import Codec
from tf_transformer.text.plain_texts import PlainTexts, Scored, Source

METADATA = "metadata.json"
NOTHING = -1e8  # the score of a missing translation is lower


class Hypotheses(NamedTuple):
    """The hypotheses for a row of source ids, best first."""

    ids: list[list[int]]  # with the end token
    scores: list[float]  # log-probabilities divided by the length penalty
    log_probabilities: list[float]  # nats; [] if the file does not give them


class PairScore(NamedTuple):
    """The score of a given translation."""

    score: float  # log-probability divided by the length penalty
    log_probability: float  # nats


class StandaloneModel:
    """The base class: an exported folder, ready to translate strings.

    A subclass loads `file`, the name of the model's file, and has its `search` and `attend`.

    Raises:
        InputError: for a folder without the files of an export, or a text with a wrong target tag.
    """

    file: str
    format: str  # of the export

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        if not all((self.path / name).is_file() for name in (self.file, METADATA)):
            raise InputError(
                f"{folder} is not an exported folder on this machine. Make one: python -m export "
                f"--format {self.format}."
            )
        self.facts = json.loads((self.path / METADATA).read_text("utf-8"))
        self.options = self.facts["decoding"]
        self.texts = PlainTexts(Codec.load(self.path), self.options)

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypotheses]:
        """The hypotheses for each row of source ids, with the end id."""
        raise NotImplementedError

    def attend(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        """The attention of ids of a translation to those of its source, float32 (T, S).

        Rows sum to 1 without the end id of the source. Kept spans need it.
        """
        raise NotImplementedError

    def log_probabilities(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[float]:
        """The log-probability of the target of each pair of source ids and target ids, in nats."""
        raise InputError(
            f"--format {self.format} does not score translations. Use --format ctranslate2, litert "
            "or saved_model."
        )

    def __call__(self, texts: Sequence[str]) -> list[Scored]:
        """The best translation of each text."""
        return [row[0] for row in self.n_best(texts)]

    def n_best(self, texts: Sequence[str]) -> list[list[Scored]]:
        """Up to `num_hypotheses` translations of each text, best first; at least one."""
        texts = as_list("texts", texts)
        self.texts.require_tags(texts)
        divided = list(map(self.texts.parts, texts))
        sources = [self.texts.read(part.tag + part.text) for parts in divided for part in parts]
        found = iter(self.search([source.ids for source in sources if source.ids]))
        rows = iter([
            self._written(next(found), source) if source.ids else [Scored(source.copy, 0.0)]
            for source in sources
        ])  # fmt: skip
        return [self.texts.joined(parts, [next(rows) for _ in parts]) for parts in divided]

    def score(self, texts: Sequence[str], translations: Sequence[str]) -> list[PairScore]:
        """The model's score of a given translation of each text; 0 for a pair of empty texts."""
        texts, translations = as_list("texts", texts), as_list("translations", translations)
        if len(texts) != len(translations):
            raise InputError(
                f"expected as many translations as texts, got {len(translations)} translations and "
                f"{len(texts)} texts."
            )
        self.texts.require_tags(texts)
        pairs = list(map(self.texts.read_pair, texts, translations))
        have_text = [max(map(len, pair)) > 1 for pair in pairs]
        found = iter(self.log_probabilities(list(itertools.compress(pairs, have_text))))
        totals = [next(found) if has_text else 0.0 for has_text in have_text]
        return [
            PairScore(total / self.penalty(len(target)), total)
            for total, (_, target) in zip(totals, pairs, strict=True)
        ]

    def penalty(self, length: int) -> float:
        """((c + length) / (c + 1))^α of a translation; the length counts the end token."""
        offset = self.options["length_penalty_offset"]
        return ((offset + length) / (offset + 1)) ** self.options["length_penalty"]

    def _written(self, found: Hypotheses, source: Source) -> list[Scored]:
        """The translations of hypotheses."""
        scores = [score for score in found.scores if score > NOTHING]  # the best ones stand first
        texts = self.texts.written(found.ids[: len(scores)], source, self.attend)
        rows = list(map(Scored, texts, scores))
        if self.options["distinct"]:
            best: dict[str, Scored] = {}
            for row in rows:
                best.setdefault(row.text, row)
            rows = list(best.values())
        return rows[: self.options["num_hypotheses"]] or [Scored("", 0.0)]


def as_list(name: str, texts: Iterable[str]) -> list[str]:
    """Checks texts, and makes a list of them; `name` is for the error."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
    items: list[Any] = list(texts) if is_list else [None]
    if not all(isinstance(item, str) for item in items):
        raise InputError(f"expected a list of {name}, got {texts!r:.80}.")
    return items


def results(model: StandaloneModel, translations: str = "") -> list[dict[str, Any]]:
    """What a program prints: translations of the lines of stdin, or scores of those in a file."""
    texts = lines(sys.stdin.buffer, STDIN)
    if not translations:
        return [{"translation": row.text, "score": row.score} for row in model(texts)]
    with open(translations, "rb") as file:
        given = lines(file, translations)
    return [pair._asdict() for pair in model.score(texts, given)]


def lines(file: BinaryIO, name: str) -> list[str]:
    """The lines of a file; `name` is for errors."""
    return [line.decode("utf-8", "replace") for line in lines_of(chunks_of(file), name)]


def run(
    main: Callable[..., Iterable[Mapping[str, Any]]], package: str, about: str, **options: str
) -> None:
    """Runs the program of a folder, and prints rows as lines of JSON.

    Args:
        main: takes the path of a folder, and the options, and gives the rows.
        package: of the runtime, for the error when it is not installed.
        about: describes the program.
        **options: options that name a file, with their help.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, text in options.items():
        parser.add_argument(f"--{name}", default="", help=text)
    own = pathlib.Path(__file__).resolve().parents[3]  # of the archive that has this file
    parser.add_argument("--folder", default=own, help="exported folder; default: its own")
    words = vars(parser.parse_args())
    # Runtimes write notices about processors to stderr. Python's own messages stay.
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        for row in main(words.pop("folder"), **words):
            line = json.dumps(row, ensure_ascii=False)
            sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed: pip install {package} sentencepiece")
    except (InputError, TextError, OSError) as error:
        sys.exit(f"error: {error}")
