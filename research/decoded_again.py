"""Whether another hypothesis, or a search under a constraint, mends a translation with a fault.

    python -m research.decoded_again --runs pretrained/a,runs/weak --source a.en --reference a.de

A fault is what a notice of `FAULTS` names. *Another hypothesis* is the first one of the beam
without such a notice. *Decoded again* is the best one of a new search under a constraint. Only
lines whose best translation has the fault count.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from research.guards import chrf
from tf_transformer.commands import command_line
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction

# The constraints of a new search, for each fault that has one.
FAULTS: dict[Notice, dict[str, Any]] = {
    Notice.LOOP: {"no_repeat_ngram_size": 4},
    Notice.UNTRANSLATED: {},
    Notice.NUMBERS: {},
    Notice.SCRIPT: {},
    Notice.EMPTY: {"min_length": 1},
    Notice.LENGTH_RATIO: {"min_length_ratio": 0.5},
}


def main(runs: str, source: str, reference: str, beam_size: int = 4, output: str = "") -> None:
    """Prints a table.

    Args:
        runs: folders of runs, with commas between them.
        source: files of texts, with commas between them.
        reference: files of their translations.
        beam_size: hypotheses of the search; 1: greedy.
        output: result file to write, like research/results/decoded_again.json.
    """
    from tf_transformer.inference.translator import Translator

    rows: list[dict[str, Any]] = []
    for run in runs.split(","):
        for texts_path, references_path in zip(
            source.split(","), reference.split(","), strict=True
        ):
            texts, references = (first_lines(x, 10**9) for x in (texts_path, references_path))
            search = {"beam_size": beam_size, "num_hypotheses": beam_size}
            n_best = Translator.from_run(run, **search).n_best(texts)
            for fault, constraint in FAULTS.items():
                held = [i for i, row in enumerate(n_best) if fault in row[0].notices]
                found = [n_best[i] for i in held]
                ways = {"another hypothesis": list(map(first_without_fault, found))}
                if constraint and held:
                    again = Translator.from_run(run, **search, **constraint)
                    ways["decoded again"] = again([texts[i] for i in held])
                before = [row[0] for row in found]
                chosen = [references[i] for i in held]
                for way, after in ways.items() if held else ():
                    names = {"run": last(run), "text": last(texts_path), "beam": beam_size}
                    row = names | {"fault": fault.value, "lines": len(held), "way": way}
                    rows.append(row | figures(before, after, chosen))
    print(of_rows(rows, left=2))
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"))


def last(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def has_fault(prediction: Prediction) -> bool:
    """Whether a translation has any fault."""
    return not FAULTS.keys().isdisjoint(prediction.notices)


def first_without_fault(row: Sequence[Prediction]) -> Prediction:
    """The first translation without a fault; the best one if all have a fault."""
    return next((x for x in row if not has_fault(x)), row[0])


def figures(
    before: Sequence[Prediction], after: Sequence[Prediction], references: Sequence[str]
) -> dict[str, Any]:
    """The share of lines without a fault afterwards, and the mean chrF of all lines."""
    mended = [not has_fault(x) for x in after]
    old, new = (chrf([x.text for x in side], references) for side in (before, after))
    return {
        "mended": round(float(np.mean(mended)), 3),
        "chrf_before": round(float(old.mean()), 2),
        "chrf_after": round(float(new.mean()), 2),
    }


if __name__ == "__main__":
    command_line.run(main)
