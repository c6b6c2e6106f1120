"""Rows of scores, from the result files of benchmarks.translations.scores."""

from collections.abc import Callable
from typing import Any

from benchmarks.figures.values import machine
from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import formatted

HEADER = ["corpus", "score", "chrF", "seeds", "trained", "machine", "config"]


def score_row(name: str, corpus: str) -> list[str]:
    """The row of a result file, by `HEADER`: the first of its scores, and its training."""
    result = read(name)
    best = result["measurements"][0]
    signature = result["summary"]["signature"].replace("|", r"\|")
    score = f"BLEU **{best['bleu']:.2f}** `{signature}`"
    seeds = seeds_of(name, lambda result: result["measurements"][0]["bleu"], "{:.2f}")
    return [corpus, score, *training(result, best["chrf"], seeds)]


def training(result: dict[str, Any], chrf: float, seeds: str) -> list[str]:
    """The columns of `HEADER` from chrF on."""
    summary = result["summary"]
    duration = formatted("training_seconds", summary["training_seconds"])
    trained = f"{summary['updates']:,} updates in {duration}"
    return [f"{chrf:.2f}", seeds, trained, machine(result), f"`{summary['config']}`"]


def seeds_of(name: str, score: Callable[[dict[str, Any]], float], form: str) -> str:
    """The number of trainings that differ in their seed, and the range of their scores."""
    names = [name, *(other for other in result_names() if other.startswith(f"{name}_seed_"))]
    if len(names) < 2:
        return "1"
    scores = [score(read(name)) for name in names]
    return f"{len(scores)}: {form.format(min(scores))} to {form.format(max(scores))}"
