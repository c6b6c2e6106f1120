"""Word alignments: links between positions, and their agreement with gold links."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

Unit = Literal["words", "pieces"]
Link = tuple[int, int]  # positions in source and target, counted from 0


class GoldLinks(NamedTuple):
    """The correct links of a sentence pair."""

    sure: Collection[Link]
    possible: Collection[Link]  # contains the sure links


class Agreement(NamedTuple):
    """Scores of links A against sure links S and possible links P, each from 0 to 1."""

    error_rate: float  # 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    precision: float  # |A ∩ P| / |A|
    recall: float  # |A ∩ S| / |S|


def agreement(predicted: Sequence[Collection[Link]], gold: Sequence[GoldLinks]) -> Agreement:
    """The alignment error rate of a corpus (Och and Ney 2003, section 6).

    Args:
        predicted: the predicted links of each sentence pair.
        gold: the gold links of each sentence pair.

    Returns:
        `Agreement`. The best error rate is 0, the worst is 1. Without links, precision and recall
        are 1.

    Example:
        >>> gold = [GoldLinks(sure=[(0, 0)], possible=[(0, 0), (1, 0)])]
        >>> agreement([[(0, 0), (1, 0), (1, 1)]], gold)
        Agreement(error_rate=0.25, precision=0.6666666666666666, recall=1.0)
    """
    links = in_possible = sure = in_sure = 0
    for each, (of_sure, of_possible) in zip(predicted, gold, strict=True):
        links, sure = links + len(set(each)), sure + len(set(of_sure))
        in_possible += len(set(each) & set(of_possible))
        in_sure += len(set(each) & set(of_sure))
    return Agreement(
        1 - (in_sure + in_possible) / (links + sure) if links + sure else 0.0,
        in_possible / links if links else 1.0,
        in_sure / sure if sure else 1.0,
    )
