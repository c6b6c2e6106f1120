"""Trees as sequences of actions (Vinyals et al. 2015).

`brackets` writes the label of a node before its children and again after them. `in_order` writes it
after the first child (Liu and Zhang 2017; Fernández-González and Gómez-Rodríguez 2020):

    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))
    brackets          <(S> <(NP> <word> <word> <)NP> <(VP> <word> <)VP> <)S>
    in_order          <word> <(NP> <word> <)> <(S> <word> <(VP> <)> <)>
    lexical_brackets  <(S> <(NP> ▁the ▁dog <)NP> <(VP> ▁bark <)VP> <)S>
    lexical_in_order  ▁the <(NP> ▁dog <)> <(S> ▁bark <(VP> <)> <)>

An action is one piece of the run's tokenizer. `<word>` takes the next word of the sentence. In the
lexical forms, the first piece of the word takes its place. So the decoder learns which word is next
(He and Choi 2023 compare such forms).
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tf_transformer.parsing.trees import Tree, is_word
from tf_transformer.text.special_ids import BLANK, EOS_ID
from tf_transformer.text.tokenizer import Tokenizer

WORD_PIECE = "<word>"
UNNAMED_CLOSING = "<)>"
OTHER, END, WORD, OPEN, CLOSE = range(5)  # kinds of ids


def closing(label: str) -> str:
    """Names the action that closes a bracket with this label in `brackets`."""
    return f"<){label}>"


def linearize(tree: Tree, in_order: bool) -> list[str]:
    """Converts a cleaned tree to actions, in the form `in_order` or `brackets`."""
    if is_word(tree):
        return [WORD_PIECE]
    label = tree.label()
    opening = f"<({label}>"
    first, *others = (linearize(child, in_order) for child in tree)
    rest = [action for actions in others for action in actions]
    if in_order:
        return [*first, opening, *rest, UNNAMED_CLOSING]
    return [opening, *first, *rest, closing(label)]


def symbols(labels: Iterable[str], linearization: str) -> list[str]:
    """Lists the pieces that a tokenizer needs for trees with these labels.

    Example:
        >>> symbols({"S", "NP"}, "in_order")
        ['<word>', '<(NP>', '<(S>', '<)>']
    """
    labels = sorted(labels)
    in_order, lexical = "in_order" in linearization, "lexical" in linearization
    closings = [UNNAMED_CLOSING] if in_order else [closing(label) for label in labels]
    return [*[WORD_PIECE] * (not lexical), *(f"<({label}>" for label in labels), *closings]


@dataclass(frozen=True)
class Actions:
    """The actions among the ids of a tokenizer. The arrays are int32 (V,)."""

    kinds: np.ndarray  # of each id: `OTHER`, `END`, `WORD`, `OPEN` or `CLOSE`
    labels: list[str]  # for each id, the label of the bracket that it opens or closes, or ""
    closings: np.ndarray  # for an id that opens a bracket, the id that closes it; else 0
    word_actions: np.ndarray  # for the first piece of a word, the action that takes it; else 0
    in_order: bool  # whether the linearization is `in_order`

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Actions":
        """Finds the actions of a run's tokenizer."""
        names = tokenizer.pieces
        ids = {name: i for i, name in enumerate(names) if tokenizer.is_symbol(i)}
        kinds = np.full(len(names), OTHER, np.int32)
        for name, i in ids.items():
            kinds[i] = _kind(name)
        kinds[EOS_ID] = END
        brackets = np.isin(kinds, (OPEN, CLOSE))
        labels = [name[2:-1] if named else "" for name, named in zip(names, brackets, strict=True)]
        in_order = UNNAMED_CLOSING in ids
        closings = np.zeros(len(names), np.int32)
        for opened in np.flatnonzero(kinds == OPEN):
            closings[opened] = ids[UNNAMED_CLOSING if in_order else closing(labels[opened])]
        first_pieces = np.array([name.startswith(BLANK) for name in names])
        if WORD_PIECE in ids:
            word_actions = np.where(first_pieces, ids[WORD_PIECE], 0)
        else:
            kinds[first_pieces] = WORD
            word_actions = np.where(first_pieces, np.arange(len(names)), 0)
        return cls(kinds, labels, closings, word_actions.astype(np.int32), in_order)

    @property
    def symbols(self) -> list[int]:
        """The ids of the actions that are not pieces of words."""
        takes_any_word = (self.kinds == WORD) & (self.word_actions == 0)
        return np.flatnonzero(np.isin(self.kinds, (OPEN, CLOSE)) | takes_any_word).tolist()

    @functools.cached_property
    def root(self) -> int:
        """The id that opens the root bracket of words without one: S, or the first label."""
        opening_ids = np.flatnonzero(self.kinds == OPEN)
        return int(next((i for i in opening_ids if self.labels[i] == "S"), opening_ids[0]))


def _kind(piece: str) -> int:
    """Finds the kind of a symbol."""
    if piece == WORD_PIECE:
        return WORD
    if len(piece) > 2 and piece.endswith(">"):
        return {"<(": OPEN, "<)": CLOSE}.get(piece[:2], OTHER)
    return OTHER
