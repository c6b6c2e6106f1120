"""SentencePiece, by BPE or unigrams, with one vocabulary and byte fallback; or bytes alone.

The `sentencepiece` package encodes training data. Texts of predictions are encoded by the op of
tensorflow-text on the same model file (`GraphTokenizer`). Both give the same ids.

Text changes as follows. A run of spaces becomes one space, and spaces at the ends are removed;
U+2581, SentencePiece's own character for a space, is decoded as a space; NUL is removed. A blank
line is empty: one of white space, control and format characters alone. With the normalisation
`identity` every other Unicode string is decoded unchanged: characters outside the vocabulary are
encoded as UTF-8 bytes. `nmt_nfc`, the default, rewrites text first; see `normalization`. `nmt_nfkc`
also unifies compatibility characters: ½ becomes 1⁄2, ﬁ becomes fi. With a vocabulary of bytes no
space is removed, but those of blank lines.
"""

import io
import itertools
import os
import pathlib
import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole
from tf_transformer.text.normalization import (
    NMT_NFC,
    clean,
    is_blank,
    normalize,
    with_rules,
)
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID

BYTES = 261  # size of the vocabulary without pieces: 4 special ids, 256 bytes, the blank
_THREADS = 16  # unigrams depend on their number, so every machine has the same
_SEED = 1  # of the sample of the lines; SentencePiece's own is another one in each process
_LONGEST = 4192  # bytes of a line: SentencePiece drops longer ones
_USER_DEFINED, _CONTROL = b"\x04", b"\x03"  # SentencePiece's kinds of pieces
_SMALLEST_VOCABULARY = 300  # 4 special ids, 256 bytes, and some pieces
# Differs from the paper: BPE on raw text, with bytes for characters outside the vocabulary; the
# paper has BPE on tokenised text.
_TRAINER_OPTIONS: dict[str, Any] = {
    "hard_vocab_limit": False,
    "character_coverage": 0.9999,  # rarer characters are encoded as bytes
    "byte_fallback": True,
    "pad_id": PAD_ID,
    "bos_id": BOS_ID,
    "eos_id": EOS_ID,
    "unk_id": UNK_ID,
    "minloglevel": 2,
}


class Tokenizer:
    """Strings to ids and back.

    Args:
        model: the serialised SentencePiece model.

    Example:
        >>> tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
        >>> ids = tokenizer.encode("a house")  # ids[-1] is EOS_ID
        >>> tokenizer.decode(ids)
        'a house'
    """

    def __init__(self, model: bytes):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = _with_symbols_apart(model, self._processor)
        if self.model != model:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        pieces = (self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256))
        self.byte_of = {piece: byte for byte, piece in enumerate(pieces) if piece != UNK_ID}
        self._ids_of_bytes = {byte: piece for piece, byte in self.byte_of.items()}

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int,
        normalization: str = NMT_NFC,
        segmentation: str = "bpe",
        max_lines: int = 2_000_000,
        symbols: Sequence[str] = (),
    ) -> "Tokenizer":
        """Learns the vocabulary from lines.

        Args:
            lines: the training text, of both languages for translation.
            vocabulary_size: largest number of ids; a small text gives fewer. `BYTES`: nothing is
                learned, and each byte of a text is a token.
            normalization: nmt_nfc, or a rule of SentencePiece: identity, nfkc or nmt_nfkc.
            segmentation: bpe or unigram.
            max_lines: number of lines used; a random sample of a longer text.
            symbols: pieces with an id each, in the order of their ids. No text has these ids, not
                even a text that looks like a symbol.

        Raises:
            InputError: when there is no text, or `vocabulary_size` is too small for the bytes or
                the characters of the text.
        """
        if normalization == NMT_NFC:
            normalized = map(normalize, lines)
            tokenizer = cls.train(
                *(normalized, vocabulary_size, "identity", segmentation, max_lines, symbols)
            )
            return tokenizer.with_nmt_nfc()
        if vocabulary_size == BYTES:
            return cls(_model_of_bytes(normalization))
        if vocabulary_size < _SMALLEST_VOCABULARY:
            raise InputError(
                f"data.vocabulary_size must be at least {_SMALLEST_VOCABULARY} (256 bytes, "
                f"4 special tokens and some pieces), or {BYTES} for bytes alone, got "
                f"{vocabulary_size}."
            )
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sample(_lines_with_text(lines), max_lines),
                model_writer=model,
                vocab_size=vocabulary_size,
                model_type=segmentation,
                normalization_rule_name=normalization,
                num_threads=_THREADS,
                user_defined_symbols=list(symbols),
                **_TRAINER_OPTIONS,
            )
        except RuntimeError as error:
            if "required_chars" not in str(error):
                raise
            raise InputError(
                f"data.vocabulary_size={vocabulary_size} is too small for the characters of "
                f"this text; raise it. SentencePiece's message: {error}"
            ) from error
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Tokenizer":
        """Reads a SentencePiece model file.

        Raises:
            InputError: when there is no such file, or it is not a SentencePiece model with this
                project's ids.
        """
        tokenizer = cls._parse(pathlib.Path(path))
        processor = tokenizer._processor
        ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
        expected = (PAD_ID, BOS_ID, EOS_ID, UNK_ID)
        if ids != expected:
            raise InputError(
                f"{path} has the ids {ids} for padding, start, end and unknown; expected "
                f"{expected}. Train the tokenizer with this project."
            )
        return tokenizer

    @classmethod
    def _parse(cls, path: pathlib.Path) -> "Tokenizer":
        if not path.is_file():
            raise InputError(f"{path} is not a file; it should be a run's tokenizer.")
        if not (model := path.read_bytes()):
            raise InputError(f"{path} is not a SentencePiece model: it is empty.")
        try:
            return cls(model)
        except (RuntimeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a SentencePiece model: {error}") from error

    def with_nmt_nfc(self) -> "Tokenizer":
        r"""This vocabulary with the rules of `nmt_nfc` in place of the tokenizer's own.

        Example:
            >>> tokenizer = Tokenizer.train(["a house"], 300, normalization="identity")
            >>> tokenizer.decode(tokenizer.with_nmt_nfc().encode("a\u00a0hou\u00adse"))
            'a house'
        """
        return Tokenizer(with_rules(self.model, folds_spaces=self.vocabulary_size != BYTES))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model file, whole or not at all."""
        write_whole(path, self.model)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, V."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids of a line, with the end-of-sentence id."""
        return [*self._processor.encode(_text(text)), EOS_ID]

    @property
    def word_starts(self) -> tuple[int, ...]:
        """Ids of the pieces that begin a word; none where spaces are tokens of their own."""
        if self.vocabulary_size == BYTES:
            return ()
        return tuple(i for i in range(self.vocabulary_size) if self.piece(i).startswith("▁"))

    def word_of_pieces(self, text: str) -> list[int]:
        """The place in `text.split()` of the word of each id of a text, without the end.

        A space belongs to the word after it. Python's words and those of pieces differ: for
        example, U+2581 in a text divides pieces only.
        """
        text = clean(text)
        if is_blank(text):
            return []
        pairs = zip(" " + text[:-1], text, strict=True)
        starts = itertools.accumulate(
            before.isspace() and not here.isspace() for before, here in pairs
        )
        last = len(text.split()) - 1
        word_at = [
            min(count - (not here.isspace()), last)
            for count, here in zip(starts, text, strict=True)
        ]
        _, places = self._processor.normalize(text, with_offsets=True)  # of characters in the text
        end, words = 0, []
        for token in self._processor.encode(text):
            byte = self.byte_of.get(token)
            continues = byte is not None and 0x80 <= byte < 0xC0  # a character that has begun
            end += len(self.piece(token)) if byte is None else not continues
            words.append(word_at[min(places[end - 1], len(text) - 1)])
        return words

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many lines, on all cores."""
        rows = self._processor.encode(list(map(_text, texts)), num_threads=os.cpu_count() or 1)
        return [[*row, EOS_ID] for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, up to the first end-of-sentence id.

        Bytes that are no whole character are dropped: a search may predict half a character.
        """
        ids = [int(i) for i in ids]
        if EOS_ID in ids:
            ids = ids[: ids.index(EOS_ID)]
        parts = itertools.groupby(ids, self.byte_of.__contains__)
        return self._processor.decode(
            [i for are_bytes, part in parts for i in (self._whole(part) if are_bytes else part)]
        )

    def _whole(self, ids: Iterable[int]) -> list[int]:
        """The ids of bytes without those of incomplete characters."""
        text = bytes(self.byte_of[i] for i in ids).decode("utf-8", "ignore")
        return [self._ids_of_bytes[byte] for byte in text.encode("utf-8")]

    def merges(self) -> dict[tuple[int, int], int]:
        """By two ids, the id that byte pair encoding merges them into; the smallest comes first.

        Raises:
            InputError: when the pieces were not learned by byte pair encoding, or are bytes.

        Example:
            >>> tokenizer = Tokenizer.train(["aaab"] * 9, vocabulary_size=300)
            >>> for (left, right), made in tokenizer.merges().items():
            ...     if tokenizer.piece(made) == "▁aaab":
            ...         print(tokenizer.piece(left), tokenizer.piece(right))
            ▁ aaab
            ▁aa ab
        """
        processor = self._processor
        special = processor.is_control, processor.is_unknown, processor.is_byte
        ids = {
            processor.id_to_piece(token): token
            for token in range(self.vocabulary_size)
            if not any(kind(token) for kind in special)
        }
        # Byte pair encoding scores a piece by its rank; unigrams are scored by log probability.
        is_unigram = any(processor.get_score(token) % 1 for token in ids.values())
        if is_unigram or self.vocabulary_size == BYTES:
            kind = "unigrams" if is_unigram else "bytes"
            raise InputError(
                "data.bpe_dropout needs pieces of byte pair encoding; this vocabulary is of "
                f"{kind}. Set data.bpe_dropout to 0, or train another tokenizer."
            )
        return {
            (ids[piece[:at]], ids[piece[at:]]): made
            for piece, made in ids.items()
            for at in range(1, len(piece))
            if piece[:at] in ids and piece[at:] in ids
        }

    def is_symbol(self, token: int) -> bool:
        """Whether an id is one of the symbols that the tokenizer was trained with."""
        return token > UNK_ID and self._processor.is_control(int(token))

    def piece(self, token: int) -> str:
        """The piece of text of an id; U+2581 stands for a space."""
        return self._processor.id_to_piece(int(token))

    def piece_to_id_or_unknown(self, piece: str) -> int:
        """The id of a piece; that of the unknown piece if the vocabulary does not have it."""
        return self._processor.piece_to_id(piece)

    def piece_to_id(self, piece: str) -> int:
        """The id of a piece of the vocabulary.

        Raises:
            InputError: when the vocabulary has no such piece.
        """
        token = self._processor.piece_to_id(piece)
        if token == UNK_ID and piece != self.piece(UNK_ID):
            raise InputError(
                f"{piece!r} is not a piece of the vocabulary. A piece at the start of a word "
                "begins with U+2581 (▁), as in ▁house."
            )
        return token


def _with_symbols_apart(model: bytes, processor: sentencepiece.SentencePieceProcessor) -> bytes:
    """A SentencePiece model that finds no symbol in text: user-defined pieces as control pieces.

    Symbols follow the special ids. A piece is a protocol buffer: text, score, kind. The package's
    own module for these needs a newer protobuf than TensorFlow accepts.
    """
    for token in range(UNK_ID + 1, processor.get_piece_size()):
        text = processor.id_to_piece(token).encode()
        score = struct.pack("<f", processor.get_score(token))
        length = len(text)  # in groups of 7 bits; the first has a mark when another follows
        size = bytes([length] if length < 128 else [length % 128 + 128, length // 128])
        piece = b"\n%s%s\x15%s\x18" % (size, text, score)
        if piece + _USER_DEFINED not in model:
            break
        model = model.replace(piece + _USER_DEFINED, piece + _CONTROL)
    return model


def _model_of_bytes(normalization: str) -> bytes:
    """A SentencePiece model without pieces but that of the space."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" "]),
        model_writer=model,
        vocab_size=BYTES,
        model_type="bpe",
        normalization_rule_name=normalization,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        **_TRAINER_OPTIONS,
    )
    return model.getvalue()


def _text(line: str) -> str:
    return "" if is_blank(line) else clean(line)


def _lines_with_text(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are not blank, long ones in parts.

    Raises:
        InputError: when all are blank.
    """
    with_text = (part for line in lines for part in _parts(line) if not is_blank(part))
    first = next(with_text, None)
    if first is None:
        raise InputError("there is no text to train a tokenizer on: every line is empty.")
    return itertools.chain([first], with_text)


def _sample(lines: Iterable[str], size: int) -> Iterator[str]:
    """A random sample of the lines, or all of them if they are at most `size`."""
    rng, sample = random.Random(_SEED), list[str]()
    for count, line in enumerate(lines, 1):
        if count <= size:
            sample.append(line)
        elif (place := rng.randrange(count)) < size:
            sample[place] = line
    sample.reverse()
    while sample:
        yield sample.pop()  # SentencePiece has a copy of those before


def _parts(line: str) -> Iterator[str]:
    """The line in parts that SentencePiece's trainer takes, divided at spaces where it has some."""
    start, longest = 0, _LONGEST // 4  # characters of at most 4 bytes
    is_long = len(line) > longest and len(clean(line).encode("utf-8")) > _LONGEST
    while is_long and len(line) - start > longest:
        end = line.rfind(" ", start + 1, start + longest) + 1 or start + longest
        yield line[start:end]
        start = end
    yield line[start:]
