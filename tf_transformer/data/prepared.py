"""A prepared corpus: a folder that holds a training text as ids, and the vocabulary.

    config.yaml         the options of `data` for a training run on it
    tokenizer.model     the vocabulary; with separate ones, a file for each side
    prepared.json       the fields of `Prepared`
    <hash>/             a token store for each corpus; see `store.py`. Beside a shard: its keys

`tf-transformer prepare` writes it on Apache Beam (`beam_pipeline.py`).
"""

import json
import os
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

KEYS = ".keys"  # the ending of a file of keys; see `training_keys.py`
_FACTS = "prepared.json"


@dataclass(frozen=True)
class Prepared:
    """What a prepared corpus says about its text.

    Attributes:
        folder: the folder.
        identities: for each corpus, a text that identifies its examples.
        pairs: number of pairs of all corpora.
        bytes: bytes of the longer side in UTF-8, all pairs together.
    """

    folder: str
    identities: Sequence[str]
    pairs: int
    bytes: int

    @classmethod
    def load(cls, folder: str) -> "Prepared":
        """Reads the facts of a folder; an `InputError` if it has none."""
        try:
            facts = json.loads(pathlib.Path(folder, _FACTS).read_text("utf-8"))
            return cls(folder, facts["identities"], facts["pairs"], facts["bytes"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InputError(
                f"data.prepared {folder} is no prepared corpus: {_FACTS} is missing or broken. "
                f"Write one: tf-transformer prepare --config FILE --to {folder}"
            ) from error

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the facts to a folder."""
        facts = {"identities": self.identities, "pairs": self.pairs, "bytes": self.bytes}
        write_whole(pathlib.Path(folder, _FACTS), json.dumps(facts, indent=1) + "\n")

    @property
    def keys(self) -> list[pathlib.Path]:
        """Files with the keys of all pairs; [] for a folder of an earlier version."""
        return sorted(pathlib.Path(self.folder).glob(f"*/*{KEYS}"))

    @property
    def advice(self) -> str:
        """What to do when a training run has other options than the corpus."""
        return (
            f"Train with --config {self.folder}/config.yaml, or prepare the corpora again with the "
            "options of this training run."
        )

    def streams(self, fields: Sequence[str]) -> list[ExampleStream]:
        """A stream for each corpus, by whose identity a training run finds the token store.

        It has no texts. A pass over it is an `InputError`, as when there is no such store.
        """

        def start(_: Counter[str]) -> Iterator[Texts]:
            raise InputError(
                f"{self.folder} has ids, and no text to read. A training run uses the ids if it "
                "has the same vocabulary, data.max_length, tags, decode.punctuation and "
                f"decode.target_tag, and if no file is damaged. {self.advice}"
            )

        return [
            ExampleStream(tuple(fields), start, lambda identity=identity: identity)  # type: ignore[misc]
            for identity in self.identities
        ]
