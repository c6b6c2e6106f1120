"""Whether a second search under a constraint mends translations with a fault.

    python -m research.second_search --runs pretrained/a,pretrained/b --sets a.jsonl,b.jsonl \
        --news n.en:n.de,n.de:n.en

The texts are those of a set of `benchmarks.translations.stranger`, the same with typing errors,
and news. A fault is what a notice of `WAYS` names. Each way gives a second translation. It replaces
the first one if it has fewer faults. Only lines with the fault count.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from keras import KerasTensor, ops

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from benchmarks.translations.stranger import read
from research.guards import chrf, words_with_numbers
from tf_transformer.commands import command_line
from tf_transformer.config import DecodeConfig
from tf_transformer.data.augmentation.noise import typos
from tf_transformer.decoding import NEG_INF
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction
from tf_transformer.inference.search import Search
from tf_transformer.inference.translator import Translator

# The options of a second search by name, or a way that is not an option.
OPTIONS: dict[str, dict[str, Any]] = {
    "no n-gram of 3 twice": {"no_repeat_ngram_size": 3},
    "no n-gram of 4 twice": {"no_repeat_ngram_size": 4},
    "repetition penalty 1.3": {"repetition_penalty": 1.3},
    "at least half of the length": {"min_length_ratio": 0.5},
    "length penalty 1.5": {"length_penalty": 1.5},
    "beam of 12": {"beam_size": 12},
    "decode.second_search": {"second_search": True},
}
NEXT, NO_COPIES, TERMS = "next hypothesis", "no pieces of the source", "numbers as terms"
EVERY = (NEXT, "beam of 12", "decode.second_search")
WAYS: dict[Notice, Sequence[str]] = {
    Notice.LOOP: (*EVERY, *list(OPTIONS)[:3]),
    Notice.UNTRANSLATED: (*EVERY, NO_COPIES),
    Notice.EMPTY: (*EVERY, "at least half of the length"),
    Notice.LENGTH_RATIO: (*EVERY, "at least half of the length", "length penalty 1.5"),
    Notice.SCRIPT: EVERY,
    Notice.NUMBERS: (*EVERY, TERMS),
}


def main(runs: str, sets: str, news: str, output: str = "") -> None:
    """Prints a table.

    Args:
        runs: folders of runs, with commas between them.
        sets: for each run, a set that `stranger` has written.
        news: for each run, a file of sentences, a colon, and a file of their translations.
        output: result file to write, like research/results/second_search.json.
    """
    rows: list[dict[str, Any]] = []
    for run, path, files in zip(*(x.split(",") for x in (runs, sets, news)), strict=True):
        pairs = [(line.source, line.target) for line in read(path)]
        rng = np.random.default_rng(1)
        pairs += [typos(pair, rng) for pair in pairs]
        pairs += zip(*(first_lines(x, 10**9) for x in files.split(":")), strict=True)
        rows += rows_of(run, pairs)
    print(of_rows(rows, left=3))
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"))


def rows_of(run: str, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """For each fault and way: lines with the fault, how many are replaced, and their chrF."""
    texts = [source for source, _ in pairs]
    first = Translator.from_run(run)(texts)
    faulty = [i for i, x in enumerate(first) if faults_of(x)]
    print(f"{run}: {len(faulty)} of {len(texts)} lines have a fault")
    rows = []
    for way, again in again_by_way(run).items():
        lines = [i for i in faulty if any(way in WAYS[fault] for fault in faults_of(first[i]))]
        second = dict(zip(lines, again([texts[i] for i in lines]), strict=True))
        for fault, ways in WAYS.items():
            held = [i for i in lines if fault in first[i].notices]
            if way in ways and held:
                sides = [[x[i] for i in held] for x in (first, second)]
                references = [pairs[i][1] for i in held]
                name = run.rsplit("/", 1)[-1]
                rows.append({"run": name, "fault": fault.value, "way": way})
                rows[-1] |= figures(*sides, references)
    return sorted(rows, key=lambda row: list(WAYS).index(Notice(row["fault"])))


def again_by_way(run: str) -> dict[str, Callable[[Sequence[str]], list[Prediction]]]:
    """For each way, a function from texts to second translations."""

    def next_hypotheses(texts: Sequence[str]) -> list[Prediction]:
        # The hypotheses of a divided text share their notices.
        n_best = Translator.from_run(run, num_hypotheses=4, split="none").n_best(texts)
        return [min(row, key=lambda x: len(faults_of(x))) for row in n_best]

    def without_copies(texts: Sequence[str]) -> list[Prediction]:
        usual = Translator.from_run(run)
        options = usual.own_options
        return WithoutCopies(usual.model, usual.codec, usual.config, **options)(texts)

    def with_numbers(texts: Sequence[str]) -> list[Prediction]:
        numbers = [map(inside, words_with_numbers(text)) for text in texts]
        terms = ["".join(f"{x}\t{x}\n" for x in dict.fromkeys(row)) for row in numbers]
        return Translator.from_run(run)(texts, terms=terms)

    def by_options(way: str) -> Callable[[Sequence[str]], list[Prediction]]:
        return lambda texts: Translator.from_run(run, **OPTIONS[way])(texts)

    ways = {NEXT: next_hypotheses, NO_COPIES: without_copies, TERMS: with_numbers}
    return ways | {way: by_options(way) for way in OPTIONS}


def inside(word: str) -> str:
    """A word from its first digit to its last one."""
    return re.sub(r"^\D+|\D+$", "", word)


@dataclass(frozen=True)
class NoCopies:
    """A `Constraints.grammar` that excludes some ids of the source."""

    pieces: Sequence[int]  # ids that are excluded if the source has them

    def facts(self, source: KerasTensor, limits: KerasTensor) -> KerasTensor:
        """The excluded ids, int32 (B, S); 0 for others."""
        is_piece = np.isin(np.arange(max(self.pieces) + 2), self.pieces)  # the last one is not
        known = ops.minimum(source, len(is_piece) - 1)
        return ops.where(ops.take(ops.cast(is_piece, "bool"), known), source, 0)

    def __call__(
        self, log_p: KerasTensor, ids: KerasTensor, count: KerasTensor, facts: KerasTensor
    ) -> KerasTensor:
        excluded = ops.max(ops.one_hot(facts, log_p.shape[-1]), axis=1)[:, None] > 0
        return ops.where(excluded, NEG_INF, log_p)


class WithoutCopies(Translator):
    """A translator that takes no piece of four letters or more from the source."""

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        pieces = [
            id_
            for id_, piece in enumerate(self.codec["target"].pieces)
            if len(re.sub(r"\W", "", piece)) > 3
        ]
        return replace(super().search(config, static_shapes), grammar=NoCopies(pieces))


def faults_of(prediction: Prediction) -> list[Notice]:
    """The faults of a translation."""
    return [notice for notice in prediction.notices if notice in WAYS]


def figures(
    first: Sequence[Prediction], second: Sequence[Prediction], references: Sequence[str]
) -> dict[str, Any]:
    """How many second translations replace the first one, and what becomes of chrF."""
    pairs = zip(first, second, strict=True)
    is_new = np.array([len(faults_of(new)) < len(faults_of(old)) for old, new in pairs])
    old, new = (chrf([x.text for x in side], references) for side in (first, second))
    change = np.where(is_new, new - old, 0)
    return {
        "lines": len(first),
        "replaced": int(is_new.sum()),
        "better": int((change > 0).sum()),
        "worse": int((change < 0).sum()),
        "chrf_before": round(float(old.mean()), 2),
        "chrf_after": round(float((old + change).mean()), 2),
    }


if __name__ == "__main__":
    command_line.run(main)
