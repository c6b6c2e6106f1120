"""Actions of a tiny vocabulary, without a tokenizer."""

from tf_transformer.parsing.linearization import Actions, symbols
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

LINEARIZATIONS = ("brackets", "in_order", "lexical_brackets", "lexical_in_order")
LABELS = ("NP", "S")
WORD_PIECES = (4, 5)  # first pieces of words
INNER_PIECE = 6


class Vocabulary:
    """The methods of a tokenizer that actions need."""

    def __init__(self, linearization: str, labels=LABELS):
        ordinary = ["<pad>", "<s>", "</s>", "<unk>", "▁a", "▁b", "b"]
        self.pieces = [*ordinary, *symbols(labels, linearization)]
        self.vocabulary_size = len(self.pieces)
        self.is_symbol = range(len(ordinary), len(self.pieces)).__contains__
        self.piece, self.id = self.pieces.__getitem__, self.pieces.index


def small_actions(linearization: str, labels=LABELS) -> Actions:
    """The actions of the vocabulary."""
    return Actions.of(Vocabulary(linearization, labels))


def source_of(words: int, length: int = 0) -> list[int]:
    """Ids of a sentence, of which each second word has two pieces; padded to a length."""
    pieces = [[WORD_PIECES[0]], [WORD_PIECES[1], INNER_PIECE]]
    ids = [token for i in range(words) for token in pieces[i % 2]] + [EOS_ID]
    return ids + [PAD_ID] * (length - len(ids))
