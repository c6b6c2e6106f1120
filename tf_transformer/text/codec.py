"""The texts of an example to ids and back: one tokenizer for all fields, or one for each."""

import hashlib
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tf_transformer.text.graph_codec import GraphCodec

FILE = "tokenizer.model"  # of all fields; tokenizer.source.model and so on are of one field each
_NAME = re.compile(r"tokenizer\.(?:(\w+)\.)?model")


class Codec:
    """The tokenizers of a run.

    Args:
        tokenizer: the tokenizer of all fields, or a tokenizer for each field by its name.

    Attributes:
        tokenizers: by field; a tokenizer of all fields has the name "".

    Example:
        >>> both = Codec(Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300))
        >>> both.decode("target", both.encode("source", "a house"))
        'a house'
        >>> source, target = (Tokenizer.train([text], 300) for text in ("a house", "ein Haus"))
        >>> each = Codec({"source": source, "target": target})
        >>> each.decode("target", each.encode("target", "ein Haus"))
        'ein Haus'
    """

    def __init__(self, tokenizer: Tokenizer | Mapping[str, Tokenizer]):
        by_field = tokenizer if isinstance(tokenizer, Mapping) else {"": tokenizer}
        self.tokenizers: dict[str, Tokenizer] = dict(sorted(by_field.items()))

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Codec":
        """Reads the tokenizers of a folder that `save` has written.

        Raises:
            InputError: when they are missing or broken.
        """
        path = pathlib.Path(folder)
        files = codec_files(path)
        if "" in files or not files:
            return cls(Tokenizer.load(path / FILE))
        if len(files) == 1:
            (field,) = files
            raise InputError(
                f"{path} has the tokenizer of {field} alone, expected one for each side, or "
                f"{FILE} for both. Copy the folder again from where it is whole."
            )
        return cls({field: Tokenizer.load(file) for field, file in files.items()})

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the tokenizers: tokenizer.model, or a tokenizer.<field>.model for each field."""
        for field, tokenizer in self.tokenizers.items():
            name = f"tokenizer.{field}.model" if field else FILE
            tokenizer.save(pathlib.Path(folder, name))

    def __getitem__(self, field: str) -> Tokenizer:
        """The tokenizer of a field.

        Raises:
            InputError: for a field without a tokenizer.
        """
        tokenizer = self.tokenizers.get("") or self.tokenizers.get(field)
        if tokenizer is None:
            raise InputError(
                f"there is no tokenizer for {field or 'all texts'}: there is one for "
                f"{' and one for '.join(self.tokenizers)}."
            )
        return tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether all fields have one tokenizer."""
        return "" in self.tokenizers

    @property
    def sizes(self) -> list[int]:
        """The sizes of the vocabularies."""
        return [tokenizer.vocabulary_size for tokenizer in self.tokenizers.values()]

    @property
    def identity(self) -> str:
        """Identifies the vocabularies: other ones have another identity."""
        hashes = [_sha256(tokenizer.model) for tokenizer in self.tokenizers.values()]
        return hashes[0] if self.is_shared else _sha256(" ".join(hashes).encode())

    def size(self, field: str) -> int:
        """Number of ids of a field, V."""
        return self[field].vocabulary_size

    def encode(self, field: str, text: str) -> list[int]:
        """Ids of a line of a field, with the end-of-sentence id."""
        return self[field].encode(text)

    def encode_batch(self, field: str, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many lines, on all cores."""
        return self[field].encode_batch(texts)

    def decode(self, field: str, ids: Sequence[int]) -> str:
        """The text of ids of a field, up to the first end-of-sentence id."""
        return self[field].decode(ids)

    def in_graph(self) -> "GraphCodec":
        """The same on tensors of strings, for predictions and exports."""
        # Imported here because commands read a run's files without TensorFlow.
        from tf_transformer.text.graph_codec import GraphCodec

        return GraphCodec(self.tokenizers)

    def __str__(self) -> str:
        """For people, like "vocabulary 8,000"."""
        if self.is_shared:
            return f"vocabulary {self.sizes[0]:,}"
        sizes = zip(self.tokenizers, self.sizes, strict=True)
        return "vocabularies " + ", ".join(f"{field} {size:,}" for field, size in sizes)


def codec_files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The files of tokenizers in a folder, by field; that of all fields has the name ""."""
    paths = sorted(folder.glob("tokenizer.*"))
    return {name[1] or "": path for path in paths if (name := _NAME.fullmatch(path.name))}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
