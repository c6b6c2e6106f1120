"""Counts the terms that translations have, with and without --terms, and compares BLEU and time.

    python -m research.terms --runs pretrained/tatoeba-en-de --training tatoeba/train \
        --test tatoeba/test

Makes a glossary for each pair of a test set: nouns of the source with their translations in the
reference. Words are translations of each other if they often stand in the same pairs of the
training text (Dice's coefficient), and if each is the best partner of the other. German nouns have
capitals, so the target is German. The times are medians.
"""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu, first_lines
from tf_transformer.commands import command_line
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.translator import Translator
from tf_transformer.text.graph_terms import find_terms, parse_terms
from tf_transformer.text.terms import Term, units

SMALLEST = 0.3  # Dice's coefficient of the words of a term
NOUN = re.compile(r"[A-ZÄÖÜ][a-zäöüß]{2,}")
WORD = re.compile(r"[a-z]{3,}")


def words_of(source: str, target: str) -> tuple[set[str], set[str]]:
    """The words of a source in small letters, and the nouns inside of a target."""
    nouns = (unit for unit in units(target)[1:] if NOUN.fullmatch(unit))
    return {unit for unit in units(source) if WORD.fullmatch(unit)}, set(nouns)


def partners(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """The noun of the target that belongs to each word of the source."""
    of_source: Counter[str] = Counter()
    of_target: Counter[str] = Counter()
    of_both: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        words, nouns = words_of(source, target)
        of_source.update(words)
        of_target.update(nouns)
        for word in sorted(words):
            of_both[word].update(sorted(nouns))

    def dice(word: str, noun: str) -> float:
        return 2 * of_both[word][noun] / (of_source[word] + of_target[noun])

    best = {
        word: max(nouns, key=lambda noun: dice(word, noun))
        for word, nouns in of_both.items()
        if nouns
    }
    words: dict[str, str] = {}
    for word, noun in best.items():
        if dice(word, noun) > (dice(words[noun], noun) if noun in words else SMALLEST):
            words[noun] = word
    return {word: noun for noun, word in words.items()}


def glossary(source: str, reference: str, known: dict[str, str]) -> list[Term]:
    """The terms of a pair, whose targets stand in the reference as often as they apply."""
    nouns = Counter(units(reference))
    words = Counter(units(source))
    return [
        Term(word, known[word])
        for word in words
        if word in known and nouns[known[word]] >= words[word]
    ]


def has_terms(text: str, terms: Sequence[Term], translation: str) -> list[bool]:
    """For each place where a term applies, whether the translation has its target there."""
    lines = "\n".join(map("\t".join, terms))
    found = find_terms(tf.constant([text]), parse_terms(tf.constant([lines])))
    wanted = Counter(target.decode() for target in found.targets.numpy())
    counts = Counter(units(translation))
    return [n < counts[target] for target, count in wanted.items() for n in range(count)]


def measured(run_dir: str, train: str, test: str, lines: int, rounds: int) -> dict[str, Any]:
    """The row of a run; see `main`."""
    sides = [read_texts(f"{train}.{side}")[0] for side in ("en", "de")]
    known = partners(zip(*sides, strict=True))
    test_pairs = zip(*(first_lines(f"{test}.{side}", lines) for side in ("en", "de")), strict=True)
    cases = [(*pair, terms) for pair in test_pairs if (terms := glossary(*pair, known))]
    texts, references, terms = (list(column) for column in zip(*cases, strict=True))
    translator = Translator.from_run(run_dir)
    ways: dict[str, Any] = {
        "without": None,
        "with": ["\n".join(map("\t".join, of_line)) for of_line in terms],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    outputs: dict[str, list[str]] = {}
    for number in range(rounds + 1):  # the first traces the graphs
        for name, given in ways.items():
            start = time.perf_counter()
            outputs[name] = [translation.text for translation in translator(texts, terms=given)]
            seconds[name] += [time.perf_counter() - start] * (number > 0)
    row: dict[str, Any] = {"run": run_dir, "lines": len(texts)}
    for name in ways:
        checked = map(has_terms, texts, terms, outputs[name])
        present = [is_there for of_line in checked for is_there in of_line]
        row |= {
            "terms": len(present),
            f"present_{name}": round(100 * sum(present) / len(present), 2),
            f"bleu_{name}": round(bleu(outputs[name], references) or 0, 2),
            f"seconds_{name}": round(statistics.median(seconds[name]), 2),
        }
    ratios = [one / other for one, other in zip(seconds["with"], seconds["without"], strict=True)]
    return row | {"time": round(statistics.median(ratios), 2)}


def main(
    runs: str, training: str, test: str, lines: int = 1000, rounds: int = 3, output: str = ""
) -> None:
    """Prints a row for each run and the lines of its test set that have terms.

    Args:
        runs: folders of runs from English to German, with commas between them.
        training: for each run, its training text without the ending, for train.en and train.de.
        test: for each run, a test set without its ending.
        lines: how many of a test set's lines.
        rounds: translations of all lines for the median of the time.
        output: result file to write, for example research/results/terms.json.
    """
    columns = (value.split(",") for value in (runs, training, test))
    rows = [measured(*paths, lines, rounds) for paths in zip(*columns, strict=True)]
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"))


if __name__ == "__main__":
    command_line.run(main)
