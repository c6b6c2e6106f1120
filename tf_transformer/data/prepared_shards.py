"""What workers report of the shards that they wrote, and the prepared corpus that these become."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.config.data import SHARD_PAIRS
from tf_transformer.data.corpora import labels, training_corpora
from tf_transformer.data.examples import Part, reasons, summary
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.readers.text import FIELDS
from tf_transformer.data.store import store_folder, write_summary
from tf_transformer.data.tokens import Encoder
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole
from tf_transformer.text.codec import Codec, reading_codec

REPORT = "report.json"  # a list of (kind, row)
SHARD, SIZE, SKIPPED = "shard", "size", "skipped"  # the kinds


class Shard(NamedTuple):
    """What a worker reports of a shard: a row of the kind `SHARD`."""

    corpus: int
    number: int
    examples: int
    content: str  # its hash


class Report(NamedTuple):
    """What workers have written. `load` reads it."""

    shards: list[Shard]  # sorted
    sizes: dict[int, list[int]]  # by corpus: pairs, bytes of the sources, bytes of the targets
    skipped: dict[int, Counter[str]]  # by corpus: the number of pairs for each reason

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Report":
        """Reads the report from the folder of the shards."""
        rows = json.loads(pathlib.Path(folder, REPORT).read_text("utf-8"))
        skipped: dict[int, Counter[str]] = {}
        for (corpus, reason), count in (row for kind, row in rows if kind == SKIPPED):
            skipped.setdefault(corpus, Counter())[reason] = count
        sizes = dict(row for kind, row in rows if kind == SIZE)
        return cls([Shard(*row) for kind, row in rows if kind == SHARD], sizes, skipped)


@functools.lru_cache(maxsize=1)
def encoder_of(folder: str, identity: str) -> Encoder:
    """The encoder of translations for the vocabulary with this identity, which is in a folder."""
    codec = reading_codec(Codec.load(folder), FIELDS[0])

    def encode(texts: Mapping[str, Sequence[str]]) -> dict[str, list[list[int]]]:
        return {field: codec.encode_batch(field, texts[field]) for field in FIELDS}

    return Encoder(encode, max(codec.sizes), f"translation {codec.identity}")


def publish(folder: str, to: str, data: DataConfig) -> list[str]:
    """Makes a prepared corpus of the results in a folder, and renames it; returns lines for people.

    A corpus of `data` without examples is an `InputError`.
    """
    report, lines, identities = Report.load(folder), [], []
    named = training_corpora(data)
    codec = Codec.load(folder)
    encoder = encoder_of(folder, codec.identity)
    for number, (corpus, name) in enumerate(zip(named, labels(named), strict=True)):
        skipped = report.skipped.get(number, Counter())
        shards = [shard for shard in report.shards if shard.corpus == number]
        if not shards:
            raise InputError(f"no pair of {name} is left: {reasons(skipped)}.")
        contents = " ".join(shard.content for shard in shards)
        identities.append(f"prepared {hashlib.sha256(contents.encode()).hexdigest()}")
        examples = sum(shard.examples for shard in shards)
        lines.append(f"{name}: {summary(examples, skipped)}; {len(shards):,} shards")
        tagged = Part("", Prepared(to, identities, 0, 0).streams(FIELDS)[-1], corpus.tag).tagged
        final, fingerprint = store_folder(
            folder, encoder, data.max_length, SHARD_PAIRS, tagged.identity
        )
        own = pathlib.Path(folder, str(number))
        _renumber(own, [shard.number for shard in shards])
        write_summary(own, fingerprint, FIELDS, len(shards), examples, skipped)
        shutil.rmtree(final, ignore_errors=True)  # of an equal corpus
        own.rename(final)
    pairs, *sides = (sum(column) for column in zip(*report.sizes.values(), strict=True))
    Prepared(to, identities, pairs, max(sides)).save(folder)
    _save_options(folder, dataclasses.replace(data, prepared=to, vocabulary_size=max(codec.sizes)))
    pathlib.Path(folder, REPORT).unlink()
    os.rename(folder, to)
    return lines


def _renumber(folder: pathlib.Path, numbers: Sequence[int]) -> None:
    """Closes the gaps that shards without examples leave."""
    for new, old in enumerate(numbers):
        for path in folder.glob(f"{old:05d}.*") if new != old else ():
            path.rename(folder / path.name.replace(f"{old:05d}", f"{new:05d}", 1))


def _save_options(folder: str, data: DataConfig) -> None:
    """Writes the options of a training run on the corpus: those that are not the defaults."""
    import yaml  # --help does without

    options = _changed(data)
    for name in ("corpora", "valid_corpora"):
        options[name] = list(map(_changed, getattr(data, name)))
    options["max_length"] = data.max_length  # its default depends on another option
    content = yaml.safe_dump({"data": options}, sort_keys=False, allow_unicode=True)
    write_whole(pathlib.Path(folder, "config.yaml"), content)


def _changed(options: Any) -> dict[str, Any]:
    """The fields of a dataclass of options that are not its defaults."""
    defaults = dataclasses.asdict(type(options)())
    return {
        name: value
        for name, value in dataclasses.asdict(options).items()
        if value != defaults[name]
    }
