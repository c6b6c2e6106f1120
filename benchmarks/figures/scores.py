"""Tables of scores, from the result files of benchmarks.translations."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.figures.rendering import machine
from benchmarks.harness.results import ROOT, path_of, read, result_names
from benchmarks.harness.tables import formatted, markdown

HEADER = ["score", "chrF", "other seeds", "time", "config"]


def score_table(
    corpora: Mapping[str, str], columns: int = len(HEADER), first: str = "corpus"
) -> str:
    """The scores of training runs, and the signatures of their BLEU.

    Args:
        corpora: what was scored or trained, by the name of the result file.
        columns: those of `HEADER` that are shown, from the first on.
        first: the header of the first column.
    """
    rows = [_row(*entry)[: columns + 1] for entry in corpora.items()]
    table = markdown([first, *HEADER[:columns]], rows, left=columns + 1)
    return f"{table}\n\n{_signatures(corpora)}"


def trainings(names: Sequence[str]) -> str:
    """Each training run with its score, for result files and those of their other seeds."""
    rows = []
    for name in (every for first in names for every in (first, *_other_seeds(first))):
        result = read(name)
        summary = result["summary"]
        rows.append(
            [
                f"`{path_of(name).relative_to(ROOT)}`",
                _score(result),
                f"{summary['updates']:,}",
                formatted("training_seconds", summary["training_seconds"]),
                machine(result),
                result["date"],
            ]
        )
    header = ["result", "score", "updates", "training", "machine", "scored on"]
    return markdown(header, rows, left=len(header))


def _row(name: str, corpus: str) -> list[str]:
    """The row of a result file: what was scored, then `HEADER`."""
    result = read(name)
    summary = result["summary"]
    others = ", ".join(_score(read(other)) for other in _other_seeds(name))
    kind = "exact match" if "exact_match" in summary else "BLEU"
    return [
        corpus,
        f"{kind} **{_score(result)}**",
        f"{_of_first(result, 'chrf'):.2f}",
        others or "–",
        formatted("training_seconds", summary["training_seconds"]),
        f"`{summary['config']}`",
    ]


def _score(result: Mapping[str, Any]) -> str:
    """Exact matches where they are the measure, else the first BLEU."""
    summary = result["summary"]
    if "exact_match" in summary:
        return f"{summary['exact_match']:.1%}"
    return f"{_of_first(result, 'bleu'):.2f}"


def _of_first(result: Mapping[str, Any], field: str) -> float:
    """A score of the first way to translate, or of the only one."""
    summary = result["summary"]
    return summary[field] if field in summary else result["measurements"][0][field]


def _other_seeds(name: str) -> list[str]:
    """The result files of the same training run with other seeds."""
    return [other for other in result_names() if other.startswith(f"{name}_seed_")]


def _signatures(corpora: Mapping[str, str]) -> str:
    """The signature of BLEU, and which corpora have another one."""
    scored: dict[str, list[str]] = {}
    for name, corpus in corpora.items():
        summary = read(name)["summary"]
        if "exact_match" not in summary:
            scored.setdefault(summary["signature"], []).append(corpus)
    first, *others = scored
    differ = "".join(f" `{other}`: {'; '.join(scored[other])}." for other in others)
    return textwrap.fill(
        f"Signature of BLEU: `{first}`.{differ}",
        width=120,
        break_long_words=False,
        break_on_hyphens=False,
    )
