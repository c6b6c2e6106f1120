"""SentencePiece, by BPE or unigrams, with one vocabulary and byte fallback; or bytes alone.

Python code uses the `sentencepiece` package; an exported graph uses tensorflow-text's op on the
same model file. Both give the same ids.

Text changes as follows. A run of blanks becomes one blank, and blanks at the ends are removed;
U+2581, SentencePiece's own sign for a blank, is decoded as a blank. With the normalisation
`identity`, the default, every other Unicode string is decoded unchanged: characters outside the
vocabulary are encoded as UTF-8 bytes. `nmt_nfkc` rewrites text first: compatibility characters are
unified (½ becomes 1⁄2, ﬁ becomes fi), tabs and zero-width spaces become blanks, control characters
are removed. With a vocabulary of bytes no blank is removed.
"""

import io
import itertools
import os
import pathlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.files import write_whole
from tf_transformer.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID

BYTES = 261  # size of the vocabulary without pieces: 4 special ids, 256 bytes, the blank
_USER_DEFINED, _CONTROL = b"\x04", b"\x03"  # SentencePiece's kinds of pieces
_SMALLEST_VOCABULARY = 300  # 4 special ids, 256 bytes, and some pieces
# Differs from the paper: BPE on raw text, with bytes for characters outside the vocabulary; the
# paper has BPE on tokenised text.
_TRAINER_OPTIONS: dict[str, Any] = {
    "hard_vocab_limit": False,
    "character_coverage": 0.9999,  # rarer characters are encoded as bytes
    "byte_fallback": True,
    "shuffle_input_sentence": True,
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
        self.model = _with_symbols_apart(model)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        # A character without a piece is encoded as bytes, which no piece reaches across.
        private_use, unknown = map(chr, range(0xE000, 0xF900)), self._processor.unk_id()
        self.boundary = next(c for c in private_use if self._processor.piece_to_id(c) == unknown)
        self.boundary_ids = self._processor.encode(self.boundary)

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int,
        normalization: str = "identity",
        segmentation: str = "bpe",
        max_lines: int = 2_000_000,
        symbols: Sequence[str] = (),
    ) -> "Tokenizer":
        """Learns the vocabulary from lines.

        Args:
            lines: the training text, of both languages for translation.
            vocabulary_size: largest number of ids; a small text gives fewer. `BYTES`: nothing is
                learned, and each byte of a text is a token.
            normalization: a SentencePiece rule: identity, nfkc or nmt_nfkc.
            segmentation: bpe or unigram.
            max_lines: number of lines used; a random sample of a longer text.
            symbols: pieces with an id each, in the order of their ids. No text has these ids, not
                even a text that looks like a symbol.

        Raises:
            InputError: when there is no text, or `vocabulary_size` is too small for the bytes or
                the characters of the text.
        """
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
                sentence_iterator=_lines_with_text(lines),
                model_writer=model,
                vocab_size=vocabulary_size,
                model_type=segmentation,
                normalization_rule_name=normalization,
                input_sentence_size=max_lines,
                num_threads=os.cpu_count() or 1,
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
        found = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
        expected = (PAD_ID, BOS_ID, EOS_ID, UNK_ID)
        if found != expected:
            raise InputError(
                f"{path} has the ids {found} for padding, start, end and unknown; expected "
                f"{expected}. Train the tokenizer with this project."
            )
        return tokenizer

    @classmethod
    def _parse(cls, path: pathlib.Path) -> "Tokenizer":
        if not path.is_file():
            raise InputError(f"{path} is not a file; it should be a run's tokenizer.")
        try:
            return cls(path.read_bytes())
        except RuntimeError as error:
            raise InputError(f"{path} is not a SentencePiece model: {error}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model file, whole or not at all."""
        write_whole(path, self.model)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, V."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids of a line, with the end-of-sentence id."""
        return [*self._processor.encode(well_formed(text)), EOS_ID]

    def encode_continuation(self, text: str) -> list[int]:
        """Ids of a text that continues a line, with the end-of-sentence id.

        SentencePiece begins a line with a blank; here is none that the text does not have.

        Example:
            >>> tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
            >>> start, rest = tokenizer.encode("a ho")[:-1], tokenizer.encode_continuation("use")
            >>> tokenizer.decode([*start, *rest])
            'a house'
        """
        ids = self._processor.encode(self.boundary + well_formed(text))
        return [*ids[len(self.boundary_ids) :], EOS_ID]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of many lines, on all cores."""
        rows = self._processor.encode(
            [well_formed(text) for text in texts], num_threads=os.cpu_count() or 1
        )
        return [[*row, EOS_ID] for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, up to the first end-of-sentence id."""
        ids = [int(i) for i in ids]
        if EOS_ID in ids:
            ids = ids[: ids.index(EOS_ID)]
        return self._processor.decode(ids)

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
        """The piece of text of an id; U+2581 stands for a blank."""
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


def _with_symbols_apart(model: bytes) -> bytes:
    """A SentencePiece model that finds no symbol in text: user-defined pieces as control pieces.

    Symbols follow the special ids. A piece is a protocol buffer: text, score, kind.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for token in range(UNK_ID + 1, processor.get_piece_size()):
        text = processor.id_to_piece(token).encode()
        score = struct.pack("<f", processor.get_score(token))
        piece = b"\n%c%s\x15%s\x18" % (len(text), text, score)
        if piece + _USER_DEFINED not in model:
            break
        model = model.replace(piece + _USER_DEFINED, piece + _CONTROL)
    return model


def _model_of_bytes(normalization: str) -> bytes:
    """A SentencePiece model without pieces but the blank's own."""
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


def well_formed(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which UTF-8 cannot encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _lines_with_text(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are not blank.

    Raises:
        InputError: when all are blank.
    """
    with_text = (line for line in lines if line.strip())
    first = next(with_text, None)
    if first is None:
        raise InputError("there is no text to train a tokenizer on: every line is empty.")
    return itertools.chain([first], with_text)
