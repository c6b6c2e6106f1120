"""Counts the terms that translations have, with and without --terms, and compares BLEU and time.

    python -m research.terms --run_dir pretrained/tatoeba-en-de --train tatoeba/train \
        --test tatoeba/test

Makes a glossary for each pair of a test set: nouns of the source with their translations in the
reference. Words are translations of each other if they often stand in the same pairs of the
training text (Dice's coefficient), and if each is the best partner of the other. German nouns have
capitals, so the target is German. The times are medians of several rounds.
"""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu, first_lines
from tf_transformer.commands import command_line
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.translator import Translator
from tf_transformer.text.terms import Term, find_terms, units

WARM_UP = 100  # lines before the first round
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
    wanted = Counter(match.target for match in find_terms(text, terms))
    counts = Counter(units(translation))
    return [n < counts[target] for target, count in wanted.items() for n in range(count)]


def main(
    run_dir: str, train: str, test: str, lines: int = 1000, rounds: int = 1, output: str = ""
) -> None:
    """Prints a row for the lines of a test set that have terms.

    Args:
        run_dir: a trained run's folder; English to German.
        train: training text without its ending, for train.en and train.de.
        test: test set without its ending.
        lines: how many of the test set's lines.
        rounds: translations of all lines for the median of the time.
        output: result file to write, for example research/results/terms.json.
    """
    sides = [read_texts(f"{train}.{side}")[0] for side in ("en", "de")]
    known = partners(zip(*sides, strict=True))
    test_pairs = zip(*(first_lines(f"{test}.{side}", lines) for side in ("en", "de")), strict=True)
    cases = [(*pair, terms) for pair in test_pairs if (terms := glossary(*pair, known))]
    texts, references, terms = (list(column) for column in zip(*cases, strict=True))
    glossaries = ["\n".join(map("\t".join, of_line)) for of_line in terms]
    translator = Translator.from_run(run_dir)
    rows: list[dict[str, Any]] = []
    row: dict[str, Any] = {"lines": len(texts)}
    for name, given in (("without", None), ("with", glossaries)):
        translator(texts[:WARM_UP], terms=None if given is None else given[:WARM_UP])
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            outputs = [translation.text for translation in translator(texts, terms=given)]
            seconds.append(time.perf_counter() - start)
        found = [
            is_there
            for case in zip(texts, terms, outputs, strict=True)
            for is_there in has_terms(*case)
        ]
        row |= {
            "terms": len(found),
            f"present_{name}": round(100 * sum(found) / len(found), 2),
            f"bleu_{name}": bleu(outputs, references),
            f"seconds_{name}": round(statistics.median(seconds), 2),
        }
    row["time"] = round(row["seconds_with"] / row["seconds_without"], 2)
    rows.append({"run": run_dir} | row)
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"))


if __name__ == "__main__":
    command_line.run(main)
