"""Counts the lines whose translations have all spans of the text, with and without --keep.

    python -m research.kept_spans --run_dir pretrained/tatoeba-en-de --source test_2016_flickr.en

Puts a random span of each kind into each line of a file: between two words, or tags around a word.
The times are the medians of several rounds.
"""

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.inference.translator import Translator
from tf_transformer.text.kept_spans import spans

NONE = "none"
WARM_UP = 100  # lines before the first round
DRAW = random.Random(3)
PLACEHOLDERS = [
    *("{name}", "%(name)s", "{{name}}", "${name}", "{n, plural, one {# name} other {# name}}"),
    *("%s", "%d", "%1$s"),
]


def word() -> str:
    """A word that no text has."""
    return "".join(DRAW.choices("abcdefghijklmnopqrstuvwxyz", k=DRAW.randrange(3, 8)))


def address() -> str:
    """A web or mail address."""
    return DRAW.choice(
        [
            f"https://{word()}.org/{word()}?{word()}={DRAW.randrange(10**5)}",
            f"{word()}.{word()}@{word()}.com",
            f"www.{word()}.net/{word()}_{DRAW.randrange(10**5)}",
        ]
    )


def placeholder() -> str:
    """A placeholder of printf, a template or a message."""
    return DRAW.choice(PLACEHOLDERS).replace("name", word())


def number_with_unit() -> str:
    """A number with a unit."""
    number = DRAW.randrange(1, 10**5)
    return DRAW.choice(
        [f"{number} km", f"{number / 10} kg", f"{number} MB", "-5 °C", f"{number:,} mm"]
    )


def emoji() -> str:
    """One or two emoji."""
    return DRAW.choice("🙂😀🚀🎉🐶🍕🏠") + DRAW.choice(["", "👍🏽", "❤\ufe0f"])


def with_span(line: str, draw: Callable[[], str]) -> str:
    """The line with a span between two of its words."""
    words = line.split()
    words.insert(DRAW.randrange(len(words) + 1), draw())
    return " ".join(words)


def with_tags(line: str) -> str:
    """The line with tags around one of its words."""
    words = line.split()
    place = DRAW.randrange(len(words))
    element = DRAW.choice(
        ["b", "i", f'a href="{word()}"', f'x id="{DRAW.randrange(99)}"', f"span class='{word()}'"]
    )
    words[place] = f"<{element}>{words[place]}</{element.split()[0]}>"
    return " ".join(words)


KINDS: dict[str, Callable[[str], str]] = {
    "addresses": lambda line: with_span(line, address),
    "tags": with_tags,
    "placeholders": lambda line: with_span(line, placeholder),
    "units": lambda line: with_span(line, number_with_unit),
    "emoji": lambda line: with_span(line, emoji),
    NONE: str,
}


def main(run_dir: str, source: str, lines: int = 1000, rounds: int = 1, output: str = "") -> None:
    """Prints for each kind how many lines keep their spans, and the seconds.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        lines: how many of the file's lines.
        rounds: translations of all lines for the median of the time.
        output: result file to write, for example research/results/kept_spans.json.
    """
    translators = [Translator.from_run(run_dir, keep=keep) for keep in ([], ["common"])]
    sentences = first_lines(source, lines)
    rows: list[dict[str, Any]] = []
    for kind, change in KINDS.items():
        texts = [change(line) for line in sentences]
        seconds: list[list[float]] = [[], []]
        outputs: list[list[str]] = [[], []]
        for translator in translators:
            translator(texts[:WARM_UP])
        for _ in range(rounds):
            for side, translator in enumerate(translators):
                start = time.perf_counter()
                outputs[side] = [translation.text for translation in translator(texts)]
                seconds[side].append(time.perf_counter() - start)
        without, kept = outputs
        right = [has_all(*pair) for pair in zip(texts, without, strict=True)]
        rows.append(
            {
                "kind": kind,
                "lines": len(texts),
                "right_without": sum(right),
                "right": sum(has_all(*pair) for pair in zip(texts, kept, strict=True)),
                "changed_though_right": sum(
                    is_right and a != b for is_right, a, b in zip(right, *outputs, strict=True)
                ),
                "seconds_without": round(statistics.median(seconds[0]), 2),
                "seconds": round(statistics.median(seconds[1]), 2),
            }
        )
        print(of_rows(rows[-1:], left=1), flush=True)
    results.save(output, rows, ("tensorflow", "keras"))


def has_all(text: str, translation: str) -> bool:
    """Whether each span of a text stands in its translation as often as in the text."""
    wanted, counts = Counter(spans(text)), Counter(spans(translation))
    return all(counts[span] == count for span, count in wanted.items())


if __name__ == "__main__":
    command_line.run(main)
