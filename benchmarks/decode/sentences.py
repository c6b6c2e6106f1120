"""Generated text: enough for a vocabulary of any size, and sentences of an exact length."""

import random
import string
from collections.abc import Callable, Sequence

_WORDS_PER_LINE = 20


def generated_lines(vocabulary_size: int) -> list[str]:
    """Lines of random words, enough of them to learn `vocabulary_size` pieces from.

    The frequency of word number n is proportional to 1/n, as in natural text, so that the
    frequent words become single pieces.
    """
    rng = random.Random(1)
    words = [
        "".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 8)))
        for _ in range(vocabulary_size)
    ]
    weights = [1 / (n + 1) for n in range(len(words))]
    text = words + rng.choices(words, weights, k=4 * len(words))
    return [" ".join(text[i : i + _WORDS_PER_LINE]) for i in range(0, len(text), _WORDS_PER_LINE)]


def sentences_of(
    tokens: int, lines: Sequence[str], encode: Callable[[str], list[int]], count: int
) -> list[str]:
    """Sentences that encode to exactly `tokens` ids, the end id included.

    Args:
        tokens: ids of each sentence.
        lines: text to take the words from.
        encode: gives the ids of a text, with the end id.
        count: how many sentences.

    Raises:
        RuntimeError: when a sentence has another number of ids.
    """
    words = sorted({word for line in lines for word in line.split()})
    single = [word for word in words if len(encode(word)) == 2]  # a piece and the end
    if not single:
        raise RuntimeError("no word of the text is a single piece; train on more text.")
    rng = random.Random(2)
    sentences = [" ".join(rng.choices(single, k=tokens - 1)) for _ in range(count)]
    for sentence in sentences:
        if len(encode(sentence)) != tokens:
            raise RuntimeError(
                f"expected {tokens} tokens, got {len(encode(sentence))} from {sentence!r}."
            )
    return sentences
