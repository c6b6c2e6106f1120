"""Texts of an example to ids and back, with one tokenizer for all fields or one for each field."""

import hashlib
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.text.normalization import clean, is_blank
from tf_transformer.text.punctuation import opus_punctuation
from tf_transformer.text.target_tag import split_tag
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tf_transformer.text.graph_tokenizer import GraphCodec

FILE = "tokenizer.model"  # for all fields; tokenizer.source.model is for the field source alone
WORDS = "source_words.txt"
NO_WORD = -1  # of the tag that `SourceCodec` adds, among the numbers of words
_NAME = re.compile(r"tokenizer\.(?:(\w+)\.)?model")


class Codec:
    """The tokenizers of a run: one for all fields, or a dict with one for each field.

    Attributes:
        tokenizers: the tokenizers by field. A tokenizer for all fields has the name "".
        seen_words: the words of the training's source text, as in `seen_words.py`; [] if unknown.

    Example:
        >>> source, target = (Tokenizer.train([text], 300) for text in ("a house", "ein Haus"))
        >>> codec = Codec({"source": source, "target": target})
        >>> codec.decode("target", codec.encode("target", "ein Haus"))
        'ein Haus'
    """

    def __init__(self, tokenizer: Tokenizer | Mapping[str, Tokenizer]):
        by_field = tokenizer if isinstance(tokenizer, Mapping) else {"": tokenizer}
        self.tokenizers: dict[str, Tokenizer] = dict(sorted(by_field.items()))
        self.seen_words: list[str] = []

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "Codec":
        """Reads tokenizers that `save` has written; an `InputError` for a missing or broken one."""
        codec = cls._load(pathlib.Path(folder))
        words = pathlib.Path(folder, WORDS)
        codec.seen_words = read_texts(words)[0] if words.is_file() else []
        return codec

    @classmethod
    def _load(cls, path: pathlib.Path) -> "Codec":
        files = codec_files(path)
        if "" in files or not files:
            return cls(Tokenizer.load(path / FILE))
        if len(files) == 1:
            (field,) = files
            raise InputError(
                f"{path} has only the tokenizer of {field}, expected one for each side, or "
                f"{FILE} for both. Copy the complete folder again."
            )
        return cls({field: Tokenizer.load(file) for field, file in files.items()})

    def save(self, folder: str | os.PathLike) -> None:
        """Writes tokenizer.model, or one tokenizer.<field>.model for each field, and the words."""
        for field, tokenizer in self.tokenizers.items():
            name = f"tokenizer.{field}.model" if field else FILE
            tokenizer.save(pathlib.Path(folder, name))
        if self.seen_words:
            lines = "".join(f"{word}\n" for word in self.seen_words)
            pathlib.Path(folder, WORDS).write_text(lines, "utf-8")

    def __getitem__(self, field: str) -> Tokenizer:
        """The tokenizer of a field; an `InputError` if there is none."""
        tokenizer = self.tokenizers.get("") or self.tokenizers.get(field)
        if tokenizer is None:
            raise InputError(
                f"there is no tokenizer for {field or 'all texts'}, only for "
                f"{' and '.join(self.tokenizers)}."
            )
        return tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether all fields share one tokenizer."""
        return "" in self.tokenizers

    @property
    def kind(self) -> str:
        """The `data.vocabularies` of the codec: shared, separate or joint.

        Joint: each side has a tokenizer, and both have the same pieces with the same ids.
        """
        if self.is_shared:
            return "shared"
        pieces = {tuple(map(x.piece, range(x.vocabulary_size))) for x in self.tokenizers.values()}
        return "joint" if len(pieces) == 1 else "separate"

    @property
    def sizes(self) -> list[int]:
        """The size of each vocabulary, in the order of `tokenizers`."""
        return [tokenizer.vocabulary_size for tokenizer in self.tokenizers.values()]

    @property
    def identity(self) -> str:
        """A hash of the vocabularies."""
        hashes = [hashlib.sha256(x.model).hexdigest() for x in self.tokenizers.values()]
        joined = " ".join(hashes).encode()
        return hashes[0] if self.is_shared else hashlib.sha256(joined).hexdigest()

    def size(self, field: str) -> int:
        """Number of ids of a field, V."""
        return self[field].vocabulary_size

    def encode(self, field: str, text: str) -> list[int]:
        """Encodes a line of a field as ids, with the end-of-sentence id."""
        return self.encode_batch(field, [text])[0]

    def encode_batch(self, field: str, texts: Sequence[str]) -> list[list[int]]:
        """Encodes many lines like `encode`, on all cores."""
        return self[field].encode_batch(texts)

    def word_of_pieces(self, field: str, text: str) -> list[int]:
        """For each id of a line of a field, the index of its word; see `Tokenizer`."""
        return self[field].word_of_pieces(text)

    def decode(self, field: str, ids: Sequence[int]) -> str:
        """Decodes ids of a field to text, up to the first end-of-sentence id."""
        return self[field].decode(ids)

    def in_graph(self) -> "GraphCodec":
        """Makes the same codec for string tensors, for predictions and exports."""
        # Imported here, because some commands read the files of a run without TensorFlow.
        from tf_transformer.text.graph_tokenizer import GraphCodec

        return GraphCodec(self.tokenizers)

    def __str__(self) -> str:
        """Describes the sizes, such as "vocabulary 8,000"."""
        if self.is_shared:
            return f"vocabulary {self.sizes[0]:,}"
        sizes = zip(self.tokenizers, self.sizes, strict=True)
        return "vocabularies " + ", ".join(f"{field} {size:,}" for field, size in sizes)


class SourceCodec(Codec):
    """A `Codec` for training. `SearchGraph.encode` gives the same ids on tensors.

    The texts of the field `source` are read with `punctuation`, kept or opus, and get `target_tag`
    if they have no tag and the option is not empty. The vocabulary must have the tag.
    """

    def __init__(self, codec: Codec, source: str, punctuation: str = "kept", target_tag: str = ""):
        super().__init__(codec.tokenizers)
        self._source = source
        self._is_opus = punctuation == "opus"
        self._rules = f"{punctuation} {target_tag}"
        self._tag = [self[source].tags[target_tag]] if target_tag in self[source].tags else []
        if target_tag and not self._tag:
            tags = ", ".join(sorted(self[source].tags)) or "none"
            raise InputError(
                f"decode.target_tag {target_tag!r} is not in the vocabulary, whose target tags "
                f"are {tags}. Give one of them, or leave it out."
            )

    @property
    def identity(self) -> str:
        """A hash of the vocabularies, and the rules for sources."""
        return f"{super().identity} {self._rules}"

    def encode_batch(self, field: str, texts: Sequence[str]) -> list[list[int]]:
        if field != self._source:
            return super().encode_batch(field, texts)
        texts = ["" if is_blank(text) else clean(text) for text in texts]
        if self._is_opus:
            texts = list(map(opus_punctuation, texts))
        parts = [split_tag(text, self[field].tags) for text in texts]
        texts = [text if rest else "" for text, (_, rest) in zip(texts, parts, strict=True)]
        return [
            [*self._tag, *row] if rest and not tag else row
            for (tag, rest), row in zip(parts, super().encode_batch(field, texts), strict=True)
        ]

    def word_of_pieces(self, field: str, text: str) -> list[int]:
        if field != self._source:
            return super().word_of_pieces(field, text)
        text = opus_punctuation(clean(text)) if self._is_opus else text
        has_tag = bool(split_tag(clean(text), self[field].tags)[0])
        words = super().word_of_pieces(field, text)
        return words if has_tag or not self._tag or not words else [NO_WORD, *words]


def reading_codec(
    codec: Codec, source: str, punctuation: str = "kept", target_tag: str = ""
) -> Codec:
    """The codec that reads the text of a training, with the rules of the search for sources.

    `source` is the field that they are for; "" for a task without such a field.
    """
    has_rules = (punctuation, target_tag) != ("kept", "")
    if not source or not (has_rules or codec[source].tags):
        return codec
    return SourceCodec(codec, source, punctuation, target_tag)


def codec_files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Finds the files of tokenizers in a folder, by field; "" is the field of a shared one."""
    paths = sorted(folder.glob("tokenizer.*"))
    return {name[1] or "": path for path in paths if (name := _NAME.fullmatch(path.name))}
