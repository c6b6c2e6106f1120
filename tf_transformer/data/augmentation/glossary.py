"""Terms that a training learns to read: words that translate each other in its own text.

`commands/words.py` links words better, by a model of NLTK. It takes minutes and an extra package.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tf_transformer.text.terms import Term, units

MOST_PAIRS = 200_000  # the first pairs of the text
FEWEST = 5  # pairs that have a word
SMALLEST = 0.3  # Dice's coefficient of two words
_WORD = re.compile(r"[^\W\d_]{3,}")


def learned_glossary(pairs: Iterable[Sequence[str]]) -> list[Term]:
    """The words of parallel text that are each other's best partner by Dice's coefficient.

    Words of function are left out: a word is in at most a fiftieth of the pairs. So is the first
    word of each text, whose capital may say nothing.

    Example:
        >>> pairs = [("my house", "mein Haus"), ("my tree", "mein Baum")] * 5
        >>> learned_glossary([*pairs, *[("no", "nein")] * 240])
        [Term(source='house', target='Haus'), Term(source='tree', target='Baum')]
    """
    rows = [tuple(map(_words, pair)) for pair in itertools.islice(pairs, MOST_PAIRS)]
    counts = [Counter(word for row in rows for word in row[side]) for side in (0, 1)]
    inside = range(FEWEST, len(rows) // 50 + 1)
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source, target in rows:
        partners = [word for word in target if counts[1][word] in inside]
        for word in source:
            if counts[0][word] in inside:
                together[word].update(partners)
    best: dict[str, tuple[float, str]] = {}  # for each target word
    for word, found in sorted(together.items()):
        dice = {x: 2 * n / (counts[0][word] + counts[1][x]) for x, n in sorted(found.items())}
        if dice and dice[partner := max(dice, key=dice.__getitem__)] >= SMALLEST:
            best[partner] = max(best.get(partner, (0.0, "")), (dice[partner], word))
    return sorted(Term(word, partner) for partner, (_, word) in best.items())


def _words(text: str) -> tuple[str, ...]:
    """The distinct words of a text behind its first one, sorted."""
    return tuple(sorted({unit for unit in units(text)[1:] if _WORD.fullmatch(unit)}))
