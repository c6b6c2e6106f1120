"""Characters that SentencePiece does not know, but that have an id in an imported vocabulary.

Marian looks up the texts of SentencePiece's pieces in a table of ids. One unknown character may be
in the table. Several of them in a row are one piece, which is not.
"""

import itertools
from collections.abc import Collection, Sequence

# The score of the pieces of such characters. Scores of byte pairs are integers, and scores of
# unigrams are higher.
LOOKED_UP = -1000.5


def joined(ids: Sequence[int], looked_up: Collection[int], unknown: int) -> dict[int, int]:
    """Joins several unknown characters of a text in a row to one unknown token.

    `looked_up` has the ids of characters with an id; others have the id `unknown`. Returns the new
    ids, by the places in `ids` where they begin.

    Example:
        >>> joined([7, 5, 8, 7], looked_up={5, 8}, unknown=3)
        {0: 7, 1: 3, 3: 7}
    """
    of_unknown = {*looked_up, unknown}
    result: dict[int, int] = {}
    for is_unknown, group in itertools.groupby(enumerate(ids), lambda x: x[1] in of_unknown):
        run = list(group)
        result.update([(run[0][0], unknown)] if is_unknown and len(run) > 1 else run)
    return result
