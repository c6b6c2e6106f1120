"""The ids of another program's vocabulary in the order of this project's ids.

Here, 0 is padding, 1 starts a target, 2 ends a sentence and 3 is unknown. Marian's models start a
target with padding, whose embedding is zero. So the rows of a matrix change places, and the row of
padding stands twice. No option of the model is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.text import sentencepiece_file as spm_file
from tf_transformer.text.sentencepiece_file import Kind, Piece
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.target_tag import TAG
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.text.unknown import LOOKED_UP

EXCLUDED = -100.0  # the logit of padding and start: the model never predicts them
PADDING = ("<blank>", "<pad>")  # tokens of padding in lists of tokens
_START = "<s>", "<start>", "<start of target>"  # the first that no other token has


class SpecialTokens(NamedTuple):
    """The special tokens of a list of tokens."""

    start: str | None  # of a target; None: zeros in place of an embedding
    end: str  # of a sentence
    unknown: str  # for unknown pieces


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary of another program, with its ids of the special tokens."""

    tokens: Sequence[str]  # in the order of their ids; "" for an id without a token
    pad: int
    start: int  # of a target; in Marian's own models, padding
    end: int  # of a sentence
    unknown: int
    # The ids of this project that the model never predicts. An id whose row stands twice, or is
    # new, must be one of them.
    excluded: tuple[int, ...] = (PAD_ID, BOS_ID)

    @classmethod
    def of(cls, ids: Mapping[str, int], size: int, pad: int, start: int, file: str) -> "Vocabulary":
        """Makes a vocabulary from the ids of tokens, with </s> and <unk>, as vocab.json has them.

        `size` is the number of rows of the embedding matrix, and `file` the name for errors.
        """
        tokens = [""] * size
        for token, number in ids.items():
            if not isinstance(number, int) or not 0 <= number < size:
                raise InputError(
                    f"{file}: the id of {token!r} must be from 0 to {size - 1:,}, the rows of the "
                    f"embeddings, got {number!r}."
                )
            if tokens[number]:
                raise InputError(
                    f"{file}: {tokens[number]!r} and {token!r} have the same id {number}."
                )
            tokens[number] = token
        for token in ("</s>", "<unk>"):
            if token not in ids:
                raise InputError(f"{file} has no {token}, which every Marian vocabulary has.")
        for name, number in (("pad_token_id", pad), ("decoder_start_token_id", start)):
            if not isinstance(number, int) or not 0 <= number < size:
                raise InputError(f"{name} must be from 0 to {size - 1:,}, got {number!r}.")
        if start in (ids["</s>"], ids["<unk>"]):
            raise InputError(
                f"decoder_start_token_id must be pad_token_id ({pad}) or a token of its own, got "
                f"{start}, which is {tokens[start]}."
            )
        return cls(tokens, pad, start, ids["</s>"], ids["<unk>"])

    @classmethod
    def of_list(
        cls, tokens: Sequence[str], size: int, special: SpecialTokens, file: str
    ) -> "Vocabulary":
        """Makes a vocabulary from a list of tokens, one for each row of the embedding matrix.

        The token of padding is <blank> or <pad>. A list without them, or whose start has zeros in
        place of an embedding, gets a token without a row. `file` is the name for errors.
        """
        if len(tokens) != size:
            raise InputError(
                f"{file} has {len(tokens):,} tokens, and the embeddings have {size:,} rows. The "
                "files belong to different models."
            )
        ids = {token: number for number, token in enumerate(tokens)}
        if len(ids) < size:
            twice = next(token for number, token in enumerate(tokens) if ids[token] != number)
            raise InputError(f"{file} has the token {twice!r} twice.")
        for name, token in special._asdict().items():
            if token is not None and token not in ids:
                raise InputError(f"{file} has no {token}, the token for {name}.")
        own = next((token for token in PADDING if token in ids), None)
        if own is None or special.start is None:
            new = next(text for text in ("<pad>", "<padding>", "<0>") if text not in ids)
            tokens, pad = [*tokens, new], size
        else:
            pad = ids[own]
        start = pad if special.start is None else ids[special.start]
        excluded = (PAD_ID,) * (pad == size) + (BOS_ID,) * (start in (pad, ids[special.end]))
        return cls(tuple(tokens), pad, start, ids[special.end], ids[special.unknown], excluded)

    @property
    def order(self) -> np.ndarray:
        """For each id here, the id there: int array (V,), or (V + 1,) if the start has no id."""
        special = [self.pad, self.start, self.end, self.unknown]
        tags = [i for i, token in enumerate(self.tokens) if TAG.fullmatch(token)]
        first = {*special, *tags}
        rest = (i for i in range(len(self.tokens)) if i not in first)
        return np.array([*special, *tags, *rest])  # symbols follow the special ids

    def rows(self, matrix: np.ndarray) -> np.ndarray:
        """Rows (V, …) of the other program in the order of this project.

        A token without a row has zeros, such as a token of padding that the import adds.
        """
        missing = np.zeros((len(self.tokens) - len(matrix), *matrix.shape[1:]), matrix.dtype)
        return np.concatenate([matrix, missing])[self.order]

    def bias(self, bias: np.ndarray) -> np.ndarray:
        """A bias (V,) of logits in the order of this project."""
        ordered = self.rows(bias)
        ordered[list(self.excluded)] = EXCLUDED
        return ordered

    def tokenizer(self, spm: bytes, file: str) -> Tokenizer:
        """The tokenizer with the pieces of a SentencePiece model and the ids of this vocabulary.

        Pieces that the vocabulary lacks still divide a text. Their ids follow the vocabulary, and
        they are encoded as unknown. `file` is the name for errors.
        """
        try:
            pieces = spm_file.read_pieces(spm)
        except spm_file.ModelFileError as error:
            raise InputError(f"{file}: {error}") from error
        special_ids = self.pad, self.start, self.end, self.unknown
        is_ours = special_ids == (PAD_ID, BOS_ID, EOS_ID, UNK_ID)
        if is_ours and [piece.text for piece in pieces] == list(self.tokens):
            return Tokenizer(spm)  # the folder is an export of this project
        own = {
            piece.text: piece for piece in pieces if piece.kind not in (Kind.CONTROL, Kind.UNKNOWN)
        }
        known = own.keys() & set(self.tokens)
        if len(known) * 2 < len(own):
            raise InputError(
                f"{file} has {len(own):,} pieces, and the vocabulary has only {len(known):,} of "
                "them. The two files belong to different models."
            )
        start = self.tokens[self.start]
        if self.start in (self.pad, self.end):
            start = next(text for text in _START if text not in self.tokens)
        special = spm_file.SpecialPieces("<unk>", start, "</s>", self.tokens[self.pad] or "<pad>")
        pieces = [self._piece(i, own) for i in self.order]
        pieces[PAD_ID] = Piece(special.padding, 0.0, Kind.CONTROL)
        pieces[BOS_ID] = Piece(special.start, 0.0, Kind.CONTROL)
        pieces[EOS_ID] = Piece(special.end, 0.0, Kind.CONTROL)
        pieces[UNK_ID] = Piece(special.unknown, 0.0, Kind.UNKNOWN)
        beyond = [piece for text, piece in own.items() if text not in known]
        return Tokenizer(spm_file.with_pieces(spm, [*pieces, *beyond], len(pieces), special))

    def _piece(self, number: int, own: Mapping[str, Piece]) -> Piece:
        """The piece of an id of the other program.

        Marian looks up the texts of SentencePiece's pieces. So characters that SentencePiece does
        not know have an id if they are in the vocabulary.
        """
        token = self.tokens[number]
        if not token:
            return Piece(f"<no token {number}>", 0.0, Kind.UNUSED)
        if TAG.fullmatch(token):
            return Piece(token, 0.0, Kind.CONTROL)
        if token in own:
            return own[token]
        if own.keys().isdisjoint(token):  # no character is known
            return Piece(token, LOOKED_UP)
        return Piece(token, 0.0, Kind.UNUSED)
