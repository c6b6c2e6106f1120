r"""Writes the words of parallel text with their translations, as a corpus of single words.

    python -m benchmarks.translations.word_pairs --source train.en --target train.de \
        --to words.tsv

Sentences teach a model little about a word that stands alone. IBM model 1 (Brown et al. 1993)
aligns the words of both languages. A pair is written if each word is the likeliest translation of
the other one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tf_transformer.commands import command_line
from tf_transformer.data.readers.text import stream_files
from tf_transformer.files.writing import write_whole

Pair = tuple[str, ...]

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ITERATIONS = 5
MOST_WORDS = 12  # of a sentence; model 1 aligns long sentences badly


def main(source: str, target: str, to: str, occurrences: int = 3, probability: float = 0.1) -> None:
    """Writes pairs of words with a tab between them, and prints their number.

    Each pair is written twice: in its usual case, and with capitals at both starts.

    Args:
        source: file of sentences.
        target: file of their translations.
        to: file to write; a corpus of the format tsv.
        occurrences: least number of sentence pairs that have both words.
        probability: least probability that each word is the translation of the other one: the
            product of both directions.
    """
    pairs = translations(list(stream_files(source, target)), occurrences, probability)
    forms = [*pairs, *((_capitalized(one), _capitalized(other)) for one, other in pairs)]
    write_whole(to, "".join(f"{one}\t{other}\n" for one, other in dict.fromkeys(forms)))
    print(f"{len(pairs):,} pairs of words")


def translations(sentences: Sequence[Pair], occurrences: int, probability: float) -> list[Pair]:
    """The words of parallel sentences that are translations of each other, in order of the text.

    Args:
        sentences: pairs of sentences.
        occurrences: least number of sentence pairs that have both words.
        probability: least product of the probabilities of both directions.
    """
    sides = [in_usual_case(texts) for texts in zip(*sentences, strict=True)]
    short = [pair for pair in zip(*sides, strict=True) if max(map(len, pair)) <= MOST_WORDS]
    names = [list(dict.fromkeys(word for pair in short for word in pair[side])) for side in (0, 1)]
    ids = [{word: number for number, word in enumerate(words)} for words in names]
    words, places = _rows([[[ids[i][word] for word in pair[i]] for i in (0, 1)] for pair in short])
    links, kind, count = np.unique(
        words[0] * len(names[1]) + words[1], return_inverse=True, return_counts=True
    )
    sources, targets = np.divmod(links, len(names[1]))
    forward = aligned(kind, places[1], sources)
    backward = aligned(kind, places[0], targets)
    both = forward * backward
    best = (both == _most(both, sources)) & (both == _most(both, targets))
    kept = np.flatnonzero(best & (count >= occurrences) & (both >= probability))
    return [(names[0][sources[link]], names[1][targets[link]]) for link in kept]


def _rows(pairs: Sequence[Sequence[Sequence[int]]]) -> tuple[np.ndarray, np.ndarray]:
    """A row for each word of a source with each word of its target.

    Args:
        pairs: the ids of the words of both sides of each pair.

    Returns:
        the ids of both words, int64 (2, rows), and the places of both words in the text.
    """
    rows = [np.zeros((4, 0), np.int64)]
    starts = np.zeros(2, np.int64)
    for pair in pairs:
        grid = np.indices([len(ids) for ids in pair]).reshape(2, -1)
        words = [np.array(ids, np.int64)[row] for ids, row in zip(pair, grid, strict=True)]
        rows.append(np.stack([*words, *(grid + starts[:, None])]))
        starts += [len(ids) for ids in pair]
    whole = np.concatenate(rows, axis=1)
    return whole[:2], whole[2:]


def aligned(kind: np.ndarray, place: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Probabilities of model 1, by expectation maximization: float64 (links,).

    Args:
        kind: int (rows,), the number of the link of two words that stand in a pair of sentences.
        place: int (rows,), the place of the word that is explained by the words in its rows.
        given: int (links,), the word of a link that the probability is conditional on.
    """
    place = np.unique(place, return_inverse=True)[1]
    probabilities = np.ones(len(given))
    for _ in range(_ITERATIONS):
        share = probabilities[kind]
        share /= np.bincount(place, share)[place]
        expected = np.bincount(kind, share, len(given))
        probabilities = expected / np.bincount(given, expected)[given]
    return probabilities


def in_usual_case(texts: Iterable[str]) -> list[list[str]]:
    """The words of texts; the first word of a text is in the case that it has most often elsewhere.

    Example:
        >>> in_usual_case(["My house!", "Is Tom in my house?", "Tom is."])
        [['my', 'house'], ['is', 'Tom', 'in', 'my', 'house'], ['Tom', 'is']]
    """
    rows = [_WORD.findall(text) for text in texts]
    counts = Counter(word for row in rows for word in row[1:])
    usual: dict[str, str] = {}
    for word, _ in counts.most_common():
        usual.setdefault(word.lower(), word)
    return [[usual.get(word.lower(), word) for word in row[:1]] + row[1:] for row in rows]


def _most(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The largest value of the group of each entry."""
    most = np.zeros(groups.max(initial=0) + 1)
    np.maximum.at(most, groups, values)
    return most[groups]


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:]


if __name__ == "__main__":
    command_line.run(main)
