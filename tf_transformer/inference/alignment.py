"""The attention of a translation to its source, and the links between their words."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.inference.attention_record import Tokens
from tf_transformer.text.word_alignment import Link, Unit


class Alignment(NamedTuple):
    """The decoder's attention to the source when it predicts each token of the target."""

    source: Tokens  # S pieces, the end token last
    target: Tokens  # T pieces, the end token last
    weights: np.ndarray  # float32 (T, S) between pieces, rows sum to 1

    def links(self, unit: Unit = "words") -> list[Link]:
        """Links as pairs of a source position and a target position, in the order of the target.

        A link leads from each target piece to the source piece that it attends to most. The end
        tokens have no links. Two words are linked if any of their pieces are linked.

        Args:
            unit: words: positions count the words of `str.split()`. pieces: positions count pieces.
        """
        if len(self.source.pieces) < 2:
            return []
        best = enumerate(self.weights[:-1, :-1].argmax(axis=1).tolist())
        if unit == "pieces":
            return [(source, target) for target, source in best]
        words = {(self.target.word_of[t], self.source.word_of[s]) for t, s in best}
        return [(source, target) for target, source in sorted(words)]

    @classmethod
    def of_parts(cls, parts: Sequence["Alignment"]) -> "Alignment":
        """The alignments of the parts of a text as one: parts do not attend to other parts.

        All attention to end tokens goes to that of the last part, so rows sum to 1.
        """
        if len(parts) == 1:
            return parts[0]
        source, target = (Tokens.joined(side) for side in list(zip(*parts, strict=True))[:2])
        weights = np.zeros((len(target.pieces), len(source.pieces)), np.float32)
        row = column = 0
        for _, _, own in parts:
            height, width = (size - 1 for size in own.shape)
            weights[row : row + height, column : column + width] = own[:-1, :-1]
            weights[row : row + height, -1] = own[:-1, -1]
            weights[-1] = 0
            weights[-1, column : column + width], weights[-1, -1] = own[-1, :-1], own[-1, -1]
            row, column = row + height, column + width
        return cls(source, target, weights)
