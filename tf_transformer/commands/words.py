"""Writes the words of parallel text with their translations, as a corpus of single words.

Sentences teach a model little about a word that stands alone. NLTK aligns the words of both
languages by IBM model 1 (Brown et al. 1993). A pair is written if each word is the likeliest
translation of the other one. NLTK is in the extra `parsing`.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable

from tf_transformer.commands import command_line
from tf_transformer.data.readers.text import stream_files
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.writing import write_whole
from tf_transformer.text import capitals

Pair = tuple[str, str]
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ITERATIONS = 5
MOST_WORDS = 12  # of a sentence; model 1 aligns long sentences badly


def main(
    source: LocalPath,
    target: LocalPath,
    to: LocalPath,
    occurrences: int = 3,
    probability: float = 0.1,
) -> None:
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
    pairs = translations(stream_files(source, target), occurrences, probability)
    forms = [*pairs, *((capitals.title(one), capitals.title(other)) for one, other in pairs)]
    write_whole(to, "".join(f"{one}\t{other}\n" for one, other in dict.fromkeys(forms)))
    print(f"{len(pairs):,} pairs of words")


def translations(
    sentences: Iterable[tuple[str, ...]], occurrences: int, probability: float
) -> list[Pair]:
    """The words of parallel sentences that are translations of each other, in order of the text."""
    try:
        from nltk.translate import AlignedSent, IBMModel1
    except ImportError as error:
        raise InputError(
            "words are aligned by NLTK, which is not installed: pip install "
            "'tf_transformer[parsing]'."
        ) from error
    sides = [in_usual_case(texts) for texts in zip(*sentences, strict=True)]
    pairs = [
        pair
        for pair in zip(*sides, strict=True)
        if all(1 <= len(words) <= MOST_WORDS for words in pair)
    ]
    if not pairs:  # NLTK divides by their number
        return []
    backward, forward = (
        IBMModel1([AlignedSent(pair[i], pair[1 - i]) for pair in pairs], _ITERATIONS)
        for i in (0, 1)
    )
    links = (itertools.product(*map(dict.fromkeys, pair)) for pair in pairs)
    counts: Counter[Pair] = Counter(itertools.chain.from_iterable(links))
    both: dict[Pair, float] = {
        (one, other): forward.translation_table[other][one] * backward.translation_table[one][other]
        for one, other in counts
    }
    most: dict[tuple[int, str], float] = {}  # the largest value by the side of a word, and the word
    for link, value in both.items():
        for word in enumerate(link):
            most[word] = max(value, most.get(word, 0.0))
    return [
        link
        for link, value in both.items()
        if counts[link] >= occurrences and value >= probability
        if all(value == most[word] for word in enumerate(link))
    ]


def in_usual_case(texts: Iterable[str]) -> list[list[str]]:
    """The words of texts; the first word of a text is in the case that it has most often elsewhere.

    Example:
        >>> in_usual_case(["My house!", "Is Tom in my house?", "Tom is."])
        [['my', 'house'], ['is', 'Tom', 'in', 'my', 'house'], ['Tom', 'is']]
    """
    rows = [_WORD.findall(text) for text in texts]
    counts = Counter(word for row in rows for word in row[1:])
    usual = {word.lower(): word for word, _ in reversed(counts.most_common())}
    return [[usual.get(word.lower(), word) for word in row[:1]] + row[1:] for row in rows]


if __name__ == "__main__":
    command_line.run(main)
