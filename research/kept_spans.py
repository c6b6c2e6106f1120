"""Compares the two ways of --keep: the model reads spans as text, or an emoji for each.

    python -m research.kept_spans --run_dir pretrained/tatoeba-en-de \
        --source test_2016_flickr.en --reference test_2016_flickr.de

Puts a random span of each kind into each line of a file: between two words, or tags around a word.
Counts the lines whose translations have all spans, of the model alone and with the repair, and
those whose tags enclose nothing. Scores the text around the spans. With the options, the model does
not read tags around words. The times are the medians of several rounds.
"""

import functools
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import sacrebleu
import tensorflow as tf

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.inference.kept_graph import KeptSpans
from tf_transformer.inference.span_symbols import SpanSymbols
from tf_transformer.inference.translator import Translator
from tf_transformer.text.kept_spans import spans, without_spans

NONE = "none"
WARM_UP = 100  # lines before the first round
EMPTY = re.compile(r"<[^/<>]*>\s*</[^<>]*>")  # an element without content
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


def main(
    run_dir: str, source: str, reference: str, lines: int = 1000, rounds: int = 1, output: str = ""
) -> None:
    """Prints for each kind and way how many lines keep their spans, chrF and the seconds.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        reference: file of their translations.
        lines: how many of the file's lines.
        rounds: translations of all lines for the median of the time.
        output: result file to write, for example research/results/kept_spans.json.
    """
    model = functools.partial(Translator.from_run, run_dir, split="none")
    alone = model(keep=[])
    ways: dict[str, Callable[[list[str]], list[str]]] = {
        "none": translation_of(alone),
        **{way: translation_of(model(keep=["common"], keep_as=way)) for way in ("text", "emoji")},
    }
    sentences, references = first_lines(source, lines), first_lines(reference, lines)
    rows: list[dict[str, Any]] = []
    for kind, change in KINDS.items():
        texts = [change(line) for line in sentences]
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        outputs: dict[str, list[str]] = {}
        for translate in ways.values():
            translate(texts[:WARM_UP])
        for _ in range(rounds):
            for way, translate in ways.items():
                start = time.perf_counter()
                outputs[way] = translate(texts)
                seconds[way].append(time.perf_counter() - start)
        by_model = {"text": outputs["none"], "emoji": through_symbols(alone, texts)}
        row: dict[str, Any] = {"kind": kind, "lines": len(texts)}
        for way, translations in by_model.items():
            row[f"right_{way}"] = count_right(texts, translations)
        for way in by_model:
            row[f"repaired_{way}"] = count_right(texts, outputs[way])
        for way in by_model:
            row[f"empty_{way}"] = len([text for text in outputs[way] if EMPTY.search(text)])
        for way in by_model:
            around = [" ".join(without_spans(text).split()) for text in outputs[way]]
            row[f"chrf_{way}"] = round(sacrebleu.corpus_chrf(around, [references]).score, 2)
        for way in ways:
            row[f"seconds_{way}"] = round(statistics.median(seconds[way]), 2)
        rows.append(row)
        print(of_rows([row], left=1), flush=True)
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"))


def translation_of(translator: Translator) -> Callable[[list[str]], list[str]]:
    """The function from lines to their translations."""
    return lambda texts: [translation.text for translation in translator(texts)]


def through_symbols(translator: Translator, texts: list[str]) -> list[str]:
    """The translations of lines by a model that reads emoji in place of spans, without repair."""
    symbols, untagged = SpanSymbols(["common"]), KeptSpans(["common"]).untagged(tf.constant(texts))
    outputs = [[translation.text] for translation in translator(symbols.hide(untagged).numpy())]
    shown = symbols.show(tf.constant(outputs), untagged)[:, 0].numpy()
    return [text.decode() for text in shown]


def count_right(texts: list[str], translations: list[str]) -> int:
    """How many lines have each span as often in their translations."""
    return sum(
        all(
            Counter(spans(translation))[span] == count
            for span, count in Counter(spans(text)).items()
        )
        for text, translation in zip(texts, translations, strict=True)
    )


if __name__ == "__main__":
    command_line.run(main)
