"""SentencePiece tokenizers: BPE or unigram pieces with byte fallback, or bytes alone.

The `sentencepiece` package encodes training data; `Unigrams` divides texts into unigrams, because
versions of the package differ. The op of tensorflow-text encodes texts of predictions with the same
model file (`GraphTokenizer`). Both give the same ids.

Encoding changes text as follows:

- Several spaces become one space, and spaces at the ends are removed. A vocabulary of bytes keeps
  them.
- U+2581, SentencePiece's character for a space, is decoded as a space. NUL is removed.
- A line of white space, control and format characters becomes empty.
- `nmt_nfc`, the default normalization, rewrites text; see `normalization`. `nmt_nfkc` also unifies
  compatibility characters: ½ becomes 1⁄2, ﬁ becomes fi. `identity` changes nothing else: UTF-8
  bytes encode the characters outside the vocabulary.
"""

import functools
import io
import itertools
import os
import pathlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole
from tf_transformer.machine.limits import available_cores
from tf_transformer.text import sentencepiece_file
from tf_transformer.text.normalization import NMT_NFC, clean, is_blank, normalize, with_rules
from tf_transformer.text.sentencepiece_file import Kind, ModelFileError, Piece
from tf_transformer.text.special_ids import BLANK, BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.target_tag import TAG, split_tag
from tf_transformer.text.terms import word_class
from tf_transformer.text.unigrams import Division, Unigrams
from tf_transformer.text.unknown import LOOKED_UP, joined

BYTES = 261  # size of the vocabulary of bytes: 4 special ids, 256 bytes, the space
_THREADS = 16  # unigram pieces depend on this number, so it is the same on every machine
_SEED = 1  # for the sample of lines; SentencePiece would use another seed in each process
_LONGEST = 4192  # bytes of a line: SentencePiece drops longer lines
_UNKNOWN = "\u2585"  # SentencePiece's character for unknown characters in training
_SMALLEST_VOCABULARY = 300  # 4 special ids, 256 bytes, and some pieces
# Differs from the paper: BPE runs on raw text, with bytes for characters outside the vocabulary. In
# the paper it runs on tokenized text.
_TRAINER_OPTIONS: dict[str, Any] = {
    "hard_vocab_limit": False,
    "character_coverage": 0.9999,  # bytes encode rarer characters
    "byte_fallback": True,
    **{"pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID, "unk_id": UNK_ID},
    "minloglevel": 2,
}


class Tokenizer:
    """Strings to ids and back, by a serialized SentencePiece model.

    Attributes:
        model: the serialized model.
        byte_of: by id, the byte that the id stands for; ids of other pieces are missing.
        vocabulary_size: number of ids, V.
        num_pieces: number of pieces that divide a text. The pieces from V on are not in the
            vocabulary of an imported model, and are encoded as unknown.
        looked_up: ids of characters that SentencePiece does not know, and that have an id all the
            same. Several unknown characters in a row are one unknown token. For imported models.
        tags: ids of target tags such as >>por<<. A text may start with one of them.
        folds_spaces: whether several spaces become one, and spaces at the ends of a text none.
        before_spaces: an id and its text, if a text keeps the spaces at its start. The op of graphs
            would drop them, except after this id.

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
        self._options = options = sentencepiece_file.read_options(self.model)
        self.num_pieces = self._processor.get_piece_size()
        self.vocabulary_size = min(options.vocabulary_size or self.num_pieces, self.num_pieces)
        ids = range(self.vocabulary_size)
        self.looked_up = frozenset(i for i in ids if self._processor.get_score(i) == LOOKED_UP)
        symbols = itertools.takewhile(self.is_symbol, ids[UNK_ID + 1 :])
        symbol_ids = {self.piece(token): token for token in symbols}
        self.tags = {piece: token for piece, token in symbol_ids.items() if TAG.fullmatch(piece)}
        self.folds_spaces = bool(options.removes_spaces) and self.vocabulary_size != BYTES
        self.before_spaces = None
        if options.adds_space and not options.removes_spaces:
            texts = ((token, self._processor.decode([token])) for token in ids[UNK_ID + 1 :])
            printable = (pair for pair in texts if pair[1].isprintable() and pair[1].strip())
            self.before_spaces = next(printable, None)

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
        """Learns a vocabulary from lines.

        Args:
            lines: the training text; for translation, the text of both languages.
            vocabulary_size: largest number of ids; a small text gives fewer. With `BYTES` (261),
                each byte of a text is a token and nothing is learned.
            normalization: nmt_nfc, or a rule of SentencePiece: identity, nfkc or nmt_nfkc.
            segmentation: bpe or unigram.
            max_lines: largest number of lines. A longer text is sampled at random.
            symbols: pieces with their own ids, in the order of the ids. No text has these ids, even
                if it looks like a symbol.

        Raises:
            InputError: if there is no text, or if `vocabulary_size` is too small for the bytes or
                the characters of the text; see `smallest_vocabulary`.
        """
        if normalization == NMT_NFC:
            normalized = map(normalize, lines)
            tokenizer = cls.train(
                *(normalized, vocabulary_size, "identity", segmentation, max_lines, symbols)
            )
            return tokenizer.with_nmt_nfc()
        if vocabulary_size == BYTES:  # the only piece is the space
            spaces = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}
            return cls(_learned([" "], BYTES, "bpe", normalization, **spaces))
        if vocabulary_size < _SMALLEST_VOCABULARY:
            raise InputError(
                f"data.vocabulary_size must be at least {_SMALLEST_VOCABULARY} (256 bytes, "
                f"4 special tokens and some pieces), or {BYTES} for bytes alone, got "
                f"{vocabulary_size}."
            )
        sample = _sample(_lines_with_text(lines), max_lines)
        options = {"num_threads": _THREADS, "user_defined_symbols": list(symbols)}
        try:
            model = _learned(sample, vocabulary_size, segmentation, normalization, **options)
        except RuntimeError as error:
            raise InputError(_reason(str(error), vocabulary_size)) from error
        return cls(model)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Tokenizer":
        """Reads a SentencePiece model file with the special ids of this project.

        Any other file, or a missing one, is an `InputError`.
        """
        path = pathlib.Path(path)
        if not path.is_file():
            raise InputError(f"expected the tokenizer of a run at {path}, but there is no file.")
        if not (model := path.read_bytes()):
            raise InputError(f"{path} is not a SentencePiece model: it is empty.")
        try:
            tokenizer = cls(model)
        except (RuntimeError, UnicodeDecodeError, ModelFileError) as error:
            raise InputError(f"{path} is not a SentencePiece model: {error}") from error
        processor = tokenizer._processor
        ids = (processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id())
        expected = (PAD_ID, BOS_ID, EOS_ID, UNK_ID)
        if ids != expected:
            raise InputError(
                f"{path} has the ids {ids} for padding, start, end and unknown; expected "
                f"{expected}. Train the tokenizer with this project."
            )
        return tokenizer

    def with_nmt_nfc(self) -> "Tokenizer":
        """Returns a tokenizer with the same vocabulary and the normalization `nmt_nfc`."""
        return Tokenizer(with_rules(self.model, folds_spaces=self.vocabulary_size != BYTES))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model file. If this fails, an earlier file stays as it is."""
        write_whole(path, self.model)

    def encode(self, text: str) -> list[int]:
        """Encodes a line as ids, with the end-of-sentence id."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes many lines like `encode`, on all cores."""
        parts = [self._without_tag("" if is_blank(text) else clean(text)) for text in texts]
        rest = [text for _, text in parts]
        if self._unigrams:
            rows = [self._division(text).ids for text in rest]
        elif len(rest) == 1:  # without threads, whose start takes longer than the text
            rows = [self._processor.encode(rest[0])]
        else:
            rows = self._processor.encode(rest, num_threads=available_cores())
        return [
            [*tag, *self._known(row), EOS_ID] for (tag, _), row in zip(parts, rows, strict=True)
        ]

    @functools.cached_property
    def _unigrams(self) -> Unigrams | None:
        """Divides texts into unigrams; None for pieces of another kind."""
        is_unigram = self._options.segmentation == sentencepiece_file.UNIGRAM
        return Unigrams(sentencepiece_file.read_pieces(self.model)) if is_unigram else None

    def _division(self, text: str) -> Division:
        """The pieces of a text."""
        if self._unigrams:
            return self._unigrams.divide(self._processor.normalize(text))
        return Division(*(self._processor.encode(text, out_type=kind) for kind in (int, str)))

    def _without_tag(self, text: str) -> tuple[list[int], str]:
        """The id of the tag that a text starts with, if any, and the rest of the text."""
        tag, rest = split_tag(text, self.tags) if self.tags else ("", text)
        return [self.tags[tag]] if tag else [], rest

    def _known(self, ids: list[int]) -> list[int]:
        """Ids with the unknown id for what the vocabulary lacks; see `looked_up`."""
        if self.looked_up:
            ids = list(joined(ids, self.looked_up, UNK_ID).values())
        if self.vocabulary_size < self.num_pieces:
            ids = [token if token < self.vocabulary_size else UNK_ID for token in ids]
        return ids

    @property
    def word_starts(self) -> tuple[int, ...]:
        """Ids of the pieces that begin a word. A vocabulary of bytes has none."""
        if self.vocabulary_size == BYTES:
            return ()
        return tuple(i for i, piece in enumerate(self.pieces) if piece.startswith("▁"))

    @functools.cached_property
    def word_ends(self) -> tuple[int, ...]:
        """Ids of the pieces that do not continue a word before them: ▁the, but not ing."""
        continues = re.compile(f"[{word_class()}]").match
        starts = {i: chr(byte) for i, byte in self.byte_of.items()}
        return tuple(
            i
            for i, piece in enumerate(self.pieces)
            if i != UNK_ID and not continues(starts.get(i, piece)) and starts.get(i, "") < "\x80"
        )

    def word_of_pieces(self, text: str) -> list[int]:
        """For each id of a text, returns the index of its word in `text.split()`.

        The end-of-sentence id is left out. A space belongs to the word after it. Pieces can start a
        word where Python does not, for example at a U+2581 in the text.
        """
        text = clean(text)
        if is_blank(text):
            return []
        words_with_spaces = re.findall(r"\s*\S+(?:\s+\Z)?", text)
        word_at = [number for number, word in enumerate(words_with_spaces) for _ in word]
        tag, rest = self._without_tag(text)
        start = len(text) - len(rest)
        ids, pieces = self._division(rest)[:2]
        _, places = self._processor.normalize(rest, with_offsets=True)  # of characters in the text
        end, words = 0, []
        for token, piece in zip(ids, pieces, strict=True):
            byte = self.byte_of.get(token)
            continues = byte is not None and 0x80 <= byte < 0xC0  # a character that has begun
            end += len(piece) if byte is None else not continues
            words.append(word_at[min(start + places[end - 1], len(text) - 1)])
        return [word_at[text.find(">>")]] * len(tag) + [
            words[place] for place in joined(ids, self.looked_up, UNK_ID)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Decodes ids to text, up to the first end-of-sentence id.

        A search may predict the bytes of half a character, or NUL, which no text has. They are
        dropped.
        """
        before_end = itertools.takewhile(EOS_ID.__ne__, map(int, ids))
        whole: list[int] = []
        for are_bytes, part in itertools.groupby(before_end, self.byte_of.__contains__):
            if are_bytes:
                text = bytes(self.byte_of[i] for i in part).decode("utf-8", "ignore")
                text = text.replace("\0", "")
                part = (self._ids_of_bytes[byte] for byte in text.encode("utf-8"))
            whole += part
        if self.before_spaces is None:
            return self._processor.decode(whole)
        token, text = self.before_spaces
        return self._processor.decode([token, *whole]).removeprefix(text).removeprefix(" ")

    def merges(self) -> dict[tuple[int, int], int]:
        """Returns the merges of byte pair encoding: from two ids to the id of the joined piece.

        Encoding makes the merge with the smallest result first. Other pieces are an `InputError`.
        """
        processor = self._processor
        special = processor.is_control, processor.is_unknown, processor.is_byte
        ids = {
            processor.id_to_piece(token): token
            for token in range(self.vocabulary_size)
            if not any(kind(token) for kind in special)
        }
        # In byte pair encoding, the score of a piece is its rank. For unigrams, it is the log
        # probability.
        is_unigram = any(processor.get_score(token) % 1 for token in ids.values())
        if is_unigram or self.vocabulary_size == BYTES:
            kind = "unigrams" if is_unigram else "bytes"
            raise InputError(
                f"data.bpe_dropout needs pieces of byte pair encoding, but this vocabulary has "
                f"{kind}. Set data.bpe_dropout to 0, or train another tokenizer."
            )
        return {
            (ids[piece[:at]], ids[piece[at:]]): made
            for piece, made in ids.items()
            for at in range(1, len(piece))
            if piece[:at] in ids and piece[at:] in ids
        }

    def is_symbol(self, token: int) -> bool:
        """Whether an id belongs to one of the `symbols` given to `train`."""
        return token > UNK_ID and self._processor.is_control(int(token))

    def piece(self, token: int) -> str:
        """Returns the piece of text of an id. U+2581 stands for a space."""
        return self._processor.id_to_piece(int(token))

    @property
    def pieces(self) -> list[str]:
        """All pieces, in the order of their ids."""
        return list(map(self.piece, range(self.vocabulary_size)))

    @property
    def text_pieces(self) -> list[str]:
        """The pieces that are text: those that are neither bytes nor symbols."""
        ids = range(UNK_ID + 1, self.vocabulary_size)
        return [self.piece(i) for i in ids if i not in self.byte_of and not self.is_symbol(i)]

    def piece_to_id_or_unknown(self, piece: str) -> int:
        """Returns the id of a piece, or `UNK_ID` if the vocabulary does not have the piece."""
        return self._processor.piece_to_id(piece)

    def piece_to_id(self, piece: str) -> int:
        """Returns the id of a piece; an `InputError` if the vocabulary does not have it."""
        token = self._processor.piece_to_id(piece)
        if token == UNK_ID and piece != self.piece(UNK_ID):
            raise InputError(
                f"{piece!r} is not a piece of the vocabulary. The first piece of a word starts "
                "with U+2581 (▁), as in ▁house."
            )
        return token


def smallest_vocabulary(characters: Mapping[str, int]) -> int:
    """The smallest size of a vocabulary that `Tokenizer.train` can learn from counted characters.

    It has the special ids, the bytes and the characters, but for the rarest 0.01 % of a text.
    """
    counts = sorted(characters.values(), reverse=True)
    least = _TRAINER_OPTIONS["character_coverage"] * sum(counts)
    before = itertools.accumulate(counts, initial=0)
    return UNK_ID + 1 + 256 + sum(covered < least for covered in before)


def _reason(error: str, vocabulary_size: int) -> str:
    """Why SentencePiece learned nothing, from its own error."""
    if needed := re.search(rf"{vocabulary_size} vs (\d+)", error):
        return (
            f"the bytes and characters of this text need a vocabulary of {int(needed[1]):,} ids, "
            f"got data.vocabulary_size={vocabulary_size}. Give {needed[1]}, and more for longer "
            "pieces."
        )
    return (
        "SentencePiece cannot learn a vocabulary from this text. Check the files of the training "
        f"text. SentencePiece says: {error}"
    )


def _with_symbols_apart(model: bytes, processor: sentencepiece.SentencePieceProcessor) -> bytes:
    """Turns user-defined pieces, which follow the special ids, into control pieces.

    The model then finds no symbol in text.
    """
    for token in range(UNK_ID + 1, processor.get_piece_size()):
        text, score = processor.id_to_piece(token), processor.get_score(token)
        symbol = sentencepiece_file.serialized(Piece(text, score, Kind.USER_DEFINED))
        control = sentencepiece_file.serialized(Piece(text, score, Kind.CONTROL))
        if symbol not in model:
            break
        model = model.replace(symbol, control)
    return model


def _learned(
    lines: Iterable[str], size: int, segmentation: str, normalization: str, **options: Any
) -> bytes:
    """The model that SentencePiece learns from lines."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        model_type=segmentation,
        normalization_rule_name=normalization,
        **_TRAINER_OPTIONS,
        **options,
    )
    return model.getvalue()


def _lines_with_text(lines: Iterable[str]) -> Iterator[str]:
    """Drops blank lines, and divides long lines.

    SentencePiece would drop each line with U+2585, its character for unknown ones.
    """
    known = (line.replace(_UNKNOWN, " ") for line in lines)
    parts = (part for line in known for part in _parts(line))
    with_text = (part for part in parts if not is_blank(part.replace(BLANK, " ")))
    first = next(with_text, None)
    if first is None:
        raise InputError(
            "there is no text to train a tokenizer on: every line is empty. Check the files of the "
            "training text."
        )
    return itertools.chain([first], with_text)


def _sample(lines: Iterable[str], size: int) -> Iterator[str]:
    """Draws a random sample of `size` lines, or takes all lines if there are fewer."""
    rng, sample = random.Random(_SEED), list[str]()
    for count, line in enumerate(lines, 1):
        if count <= size:
            sample.append(line)
        elif (place := rng.randrange(count)) < size:
            sample[place] = line
    sample.reverse()
    while sample:
        yield sample.pop()  # frees the line; SentencePiece has its own copy


def _parts(line: str) -> Iterator[str]:
    """Divides a line into parts that are short enough for SentencePiece, at spaces if possible."""
    start, longest = 0, _LONGEST // 4  # characters of at most 4 bytes
    is_long = len(line) > longest and len(clean(line).encode("utf-8")) > _LONGEST
    while is_long and len(line) - start > longest:
        end = line.rfind(" ", start + 1, start + longest) + 1 or start + longest
        yield line[start:end]
        start = end
    yield line[start:]
