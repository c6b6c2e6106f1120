"""Gold word alignments of the generated corpus, and the error rate of predicted alignments."""

import datetime
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tf_transformer.data.readers.generated import date_parts, meanings, number_in_words
from tf_transformer.text.word_alignment import Link


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
    for found_links, (of_sure, of_possible) in zip(predicted, gold, strict=True):
        links, sure = links + len(set(found_links)), sure + len(set(of_sure))
        in_possible += len(set(found_links) & set(of_possible))
        in_sure += len(set(found_links) & set(of_sure))
    return Agreement(
        1 - (in_sure + in_possible) / (links + sure) if links + sure else 0.0,
        in_possible / links if links else 1.0,
        in_sure / sure if sure else 1.0,
    )


def generate_links(
    count: int, source_language: str, target_language: str, seed: int
) -> list[GoldLinks]:
    """Makes the word alignments of the pairs of `generate`, with the same arguments.

    A part is a whole number, or the day, month or year of a date. All words of a part are linked to
    all words of the same part in the other language. The links are sure if one language has a
    single word for the part. Otherwise they are possible.

    Example:
        >>> generate(1, "en", "de", seed=3)["source"]
        ['eight hundred and six']
        >>> generate_links(1, "en", "de", seed=3)[0].sure
        [(0, 0), (1, 0), (2, 0), (3, 0)]
    """
    languages = (source_language, target_language)
    return [
        _gold_links(*(_parts_of_words(meaning, language) for language in languages))
        for meaning in meanings(count, seed)
    ]


def _gold_links(source: list[str], target: list[str]) -> GoldLinks:
    possible = [
        (s, t)
        for s, part in enumerate(source)
        for t, other in enumerate(target)
        if part and part == other
    ]
    sure = [(s, t) for s, t in possible if 1 in (source.count(source[s]), target.count(target[t]))]
    return GoldLinks(sure, possible)


def _parts_of_words(meaning: int | datetime.date, language: str) -> list[str]:
    """The name of each word's part; "" if a word belongs to no part."""
    if isinstance(meaning, datetime.date):
        parts = date_parts(meaning, language)
    else:
        parts = [(number_in_words(meaning, language), "number")]
    of_characters = [name for text, name in parts for _ in text]
    words = re.finditer("[^ ]+", "".join(text for text, _ in parts))
    return [of_characters[word.start()] for word in words]
