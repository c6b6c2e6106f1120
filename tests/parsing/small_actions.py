"""Actions of a tiny vocabulary, without a tokenizer."""

import numpy as np

from tf_transformer.parsing.linearization import (
    CLOSE,
    END,
    OPEN,
    OTHER,
    UNNAMED_CLOSING,
    WORD,
    WORD_PIECE,
    Actions,
    closing,
    opening,
)

LABELS = ("NP", "S")
END_ID = 2


def small_actions(in_order: bool, labels=LABELS) -> Actions:
    """Ids: padding, start, end, a first piece of a word, another piece; then actions."""
    names = [*[""] * 5, *_pieces(in_order, labels)]
    kinds = [{"<w": WORD, "<(": OPEN, "<)": CLOSE}.get(name[:2], OTHER) for name in names]
    kinds[END_ID] = END
    closings = [0] * len(names)
    for label in labels:
        closed = UNNAMED_CLOSING if in_order else closing(label)
        closings[names.index(opening(label))] = names.index(closed)
    return Actions(
        kinds=np.array(kinds, np.int32),
        labels=[
            name[2:-1] * (kind in (OPEN, CLOSE)) for name, kind in zip(names, kinds, strict=True)
        ],
        closings=np.array(closings, np.int32),
        starts_word=np.eye(len(names), dtype=np.int32)[3],
        in_order=in_order,
    )


def _pieces(in_order, labels):
    closings = [UNNAMED_CLOSING] if in_order else [closing(label) for label in labels]
    return [WORD_PIECE, *map(opening, labels), *closings]


def ids_of(names, in_order: bool, labels=LABELS) -> list[int]:
    """The ids of actions."""
    return [5 + _pieces(in_order, labels).index(name) for name in names]
