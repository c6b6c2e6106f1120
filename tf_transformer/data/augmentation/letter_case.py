"""Upper, title and lower case on both sides of a pair."""

import numpy as np

from tf_transformer.data.augmentation.pairs import Pair
from tf_transformer.text import capitals


def upper(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in upper case.

    Example:
        >>> upper(("Tom left.", "Tom ging fort."), np.random.default_rng(1))
        ('TOM LEFT.', 'TOM GING FORT.')
    """
    return pair[0].upper(), pair[1].upper()


def lower(pair: Pair, rng: np.random.Generator) -> Pair:
    """Writes both sides in lower case. If one has fewer than three words, only the source changes.

    A word or two in lower case are usual text: the translation of "house" is "Haus".

    Example:
        >>> rng = np.random.default_rng(1)
        >>> lower(("I See Tom", "Ich sehe Tom"), rng), lower(("A House", "Ein Haus"), rng)
        (('i see tom', 'ich sehe tom'), ('a house', 'Ein Haus'))
    """
    source, target = pair
    is_short = any(len(text.split()) < 3 for text in pair)
    return source.lower(), target if is_short else target.lower()


def title(pair: Pair, rng: np.random.Generator) -> Pair:
    """Starts every word of both sides with a capital; the other letters stay.

    Example:
        >>> title(("Tom isn't here.", "Tom ist nicht hier."), np.random.default_rng(1))
        ("Tom Isn't Here.", 'Tom Ist Nicht Hier.')
    """
    return capitals.title(pair[0]), capitals.title(pair[1])
