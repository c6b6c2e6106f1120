"""Upper, title and lower case on both sides of a pair."""

import numpy as np

from tf_transformer.data.augmentation.pairs import Pair
from tf_transformer.text import capitals


def upper(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in upper case."""
    return pair[0].upper(), pair[1].upper()


def lower(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in lower case. If one has fewer than three words, only the source changes.

    A word or two in lower case are usual text: the translation of "house" is "Haus".
    """
    source, target = pair
    is_short = any(len(text.split()) < 3 for text in pair)
    return source.lower(), target if is_short else target.lower()


def title(pair: Pair, rng: np.random.Generator) -> Pair:
    """Starts every word of both sides with a capital; the other letters stay."""
    return capitals.title(pair[0]), capitals.title(pair[1])
