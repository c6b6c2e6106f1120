"""A SentencePiece model that the user brings, with the special ids of this project."""

import pathlib
from collections.abc import Sequence

import sentencepiece

from tf_transformer.errors import InputError
from tf_transformer.text import sentencepiece_file as file
from tf_transformer.text.sentencepiece_file import Kind, Piece
from tf_transformer.text.tokenizer import Tokenizer


def load_own(path: str) -> Tokenizer:
    """Reads a SentencePiece model of any program as a `Tokenizer`.

    The model has pieces of any kind: BPE, unigram, words or characters. They and its normalization
    stay as they are. The ids change: 0 is padding, 1 starts a target, 2 ends a sentence, 3 is
    unknown. Pieces that the model lacks are added. Symbols of the user (`user_defined_symbols`) are
    found in texts, and decoded as they are.

    Raises:
        InputError: for a file that cannot be read, that is no SentencePiece model, or whose pieces
            have no unknown one; for a model that would find special pieces in texts of an export.
    """
    try:
        model = pathlib.Path(path).read_bytes()
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces = file.read_pieces(model)
        options = file.read_options(model)
    except (OSError, RuntimeError, file.ModelFileError) as error:
        raise InputError(
            f"data.tokenizer: {path} is missing or no SentencePiece model: {error} Give a .model "
            "file of SentencePiece."
        ) from error
    if [piece.kind for piece in pieces].count(Kind.UNKNOWN) != 1:
        raise InputError(
            f"data.tokenizer: {path} has no single piece for unknown characters, which id 3 stands "
            "for. Train the SentencePiece model with an unk_id."
        )
    _require_equal_graph(path, options, pieces)
    ids = (processor.pad_id(), processor.bos_id(), processor.eos_id())
    texts = {piece.text for piece in pieces}
    padding, start, end = (
        pieces[number].text if number >= 0 else _unused(name, texts)
        for number, name in zip(ids, ("<pad>", "<s>", "</s>"), strict=True)
    )
    unknown = pieces[processor.unk_id()]
    special = [Piece(text, 0.0, Kind.CONTROL) for text in (padding, start, end)] + [unknown]
    taken = {*ids, processor.unk_id()}
    others = [piece for number, piece in enumerate(pieces) if number not in taken]
    # Symbols come last: control pieces after the special ids would be symbols of a task.
    others.sort(key=lambda piece: piece.kind in (Kind.USER_DEFINED, Kind.CONTROL))
    names = file.SpecialPieces(unknown.text, start, end, padding)
    everything = [*special, *others]
    return Tokenizer(file.with_pieces(model, everything, len(everything), names))


def _require_equal_graph(path: str, options: file.Options, pieces: Sequence[Piece]) -> None:
    """Raises an `InputError` for a model that the op of graphs reads in another way than Python.

    The op takes a whole word, or a character of byte pairs, for the special piece with this text.
    """
    error = ""
    special = [x for x in pieces if x.kind in (Kind.CONTROL, Kind.UNUSED)]
    of_characters = options.segmentation in (file.BPE, file.CHAR)
    of_words = options.segmentation == file.WORD
    if not options.escapes_spaces:
        error = "does not escape spaces. Train the SentencePiece model with escape_whitespaces=true"
    elif options.ends_words_in_spaces:
        error = (
            "has spaces at the ends of words, so that no prediction could continue a part of a "
            "word. Train the SentencePiece model with treat_whitespace_as_suffix=false"
        )
    elif of_words and not options.adds_space:
        error = (
            "has words without a space at their start, so that a word such as <s> would be a "
            "special piece. Train the SentencePiece model with add_dummy_prefix=true"
        )
    elif found := [x.text for x in special if of_characters and len(x.text) == 1]:
        error = (
            f"has the special piece {found[0]!r}, which is a character of texts. Give "
            "control_symbols of the SentencePiece model at least two characters"
        )
    elif of_words and any(x.kind == Kind.UNUSED for x in special):
        error = "has unused words. Train the SentencePiece model without them"
    if error:
        raise InputError(f"data.tokenizer: {path} {error}.")


def _unused(name: str, texts: set[str]) -> str:
    """The name of a special piece that no other piece has."""
    while name in texts:
        name = f"<{name}>"
    return name
