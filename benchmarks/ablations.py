"""Rows of the paper's Table 3 that fit a small corpus, with equal budgets and several seeds.

    python -m benchmarks.ablations --runs runs/ablations --source val.en --reference val.de \
        --output results/ablations.json
    python -m benchmarks.ablations --table regularization --runs runs/regularization ...

Each row changes one thing of the first row. `regularization` is a table of ways to learn more from
a small corpus. As in the paper, the scores are those of the
development set. The same command again continues what was interrupted, and measures runs that are
complete. With `--train false` it prints the rows that are there so far.
"""

import json
import pathlib
import statistics
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from benchmarks import equal_budgets
from benchmarks.equal_budgets import Model
from benchmarks.harness import results
from benchmarks.harness.options import at_least_one
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.run_folder import RunFolder

CONFIG = "configs/multi30k_quick.yaml"
Options = dict[str, Any]  # of train.py


class Table(NamedTuple):
    """Trainings that differ from the configuration, and among each other."""

    base: Options  # of all rows
    rows: dict[str, dict[str, Options]]  # by group, then by the name of the change


PAPER_BASE: Options = {  # pre-norm with a short warm-up learns the most in a small budget
    "model.norm_first": True,
    "model.dropout_rate": 0.1,
    "train.warmup_steps": 400,
    "train.valid_score_examples": 0,
    "train.keep_checkpoints": 1,
    "decode.average": 1,
}
PAPER_ROWS: dict[str, dict[str, Options]] = {  # groups are the paper's letters
    "base": {"–": {}},
    "A": {f"{heads} heads": {"model.num_heads": heads} for heads in (1, 2, 8, 16)},
    "B": {f"d_k {size}": {"model.key_dim": size, "model.value_dim": 32} for size in (8, 16)},
    "C": {
        **{f"{layers} layers": {"model.num_layers": layers} for layers in (2, 6)},
        **{f"d_model {size}": {"model.d_model": size} for size in (64, 192)},
        **{f"d_ff {size}": {"model.d_ff": size} for size in (128, 512)},
    },
    "D": {
        **{f"dropout {rate}": {"model.dropout_rate": rate} for rate in (0.0, 0.2)},
        **{f"label smoothing {rate}": {"train.label_smoothing": rate} for rate in (0.0, 0.2)},
    },
    "E": {"learned positions": {"model.position": "learned", "model.max_length": 256}},
}
REGULARIZATION_BASE: Options = {  # a model that is near its best score within the budget
    "model.position": "rotary",
    "model.norm_first": True,
    "train.warmup_steps": 1000,
    "train.valid_score_examples": 0,
}
REGULARIZATION_ROWS: dict[str, dict[str, Options]] = {
    "base": {"–": {}},
    "noise": {
        "dropout 0.3": {"model.dropout_rate": 0.3},
        "word dropout 0.1": {"train.word_dropout": 0.1},
        "BPE-dropout 0.1": {"data.bpe_dropout": 0.1},
        "LayerDrop 0.1": {"model.layer_drop_rate": 0.1},
    },
    "targets": {f"label smoothing {rate}": {"train.label_smoothing": rate} for rate in (0.2, 0.3)},
    "two predictions": {
        "R-Drop": {"train.consistency": "r_drop"},
        "SimCut": {"train.consistency": "simcut"},
    },
}
TABLES = {
    "paper": Table(PAPER_BASE, PAPER_ROWS),
    "regularization": Table(REGULARIZATION_BASE, REGULARIZATION_ROWS),
}


def main(
    runs: str,
    source: str,
    reference: str,
    table: Literal["paper", "regularization"] = "paper",
    updates: int = 1028,
    seeds: int = 2,
    train: bool = True,
    output: str = "",
) -> None:
    """Trains and scores each row, and prints the table.

    Args:
        runs: folder for the runs, one for each row and seed.
        source: file of the development set's sentences.
        reference: file of their translations.
        table: which rows to train.
        updates: budget of each training.
        seeds: trainings of each row.
        train: whether to train; else only complete runs are scored.
        output: result file to write, for example results/ablations.json.
    """
    at_least_one(updates=updates, seeds=seeds)
    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    rows = []
    for seed in range(1, seeds + 1):  # so that all rows have one seed before any has two
        for group, changes in TABLES[table].rows.items():
            for change, options in changes.items():
                run = pathlib.Path(runs, f"{group}_{change.replace(' ', '_')}_{seed}")
                budget = {"train.steps": updates, "train.seed": seed}
                if train:
                    equal_budgets.train(
                        run, Model(run.name, CONFIG, {}), TABLES[table].base | options | budget
                    )
                if _is_complete(run, updates):
                    rows.append({"row": group, "change": change} | _scores(run, texts, references))
    if not rows:
        raise InputError(f"{runs} has no complete run of {updates:,} updates; use --train true.")
    found = combined(rows)
    print(of_rows(found, left=2))
    summary = {"table": table, "updates": updates, "seeds": seeds}
    results.save(output, found, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def _is_complete(run: pathlib.Path, updates: int) -> bool:
    return bool(_log(run)) and _log(run)[-1]["step"] == updates


def _log(run: pathlib.Path) -> list[dict[str, Any]]:
    file = RunFolder(run).metrics
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def _scores(run: pathlib.Path, texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Scores of a run; kept beside it, because a row is scored once."""
    kept = run / "development.json"
    if not kept.is_file():
        found = equal_budgets.measured(run, texts, references, [10**9])[0]
        scores = {"perplexity": _log(run)[-1]["val_perplexity"]}
        scores |= {name: found[name] for name in ("bleu", "parameters")}
        kept.write_text(json.dumps(scores))
    return json.loads(kept.read_text())


def combined(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each change: means over seeds, and the largest distance of a seed's BLEU from it.

    Example:
        >>> row = {"row": "A", "change": "1 heads", "perplexity": 8.0, "parameters": 9}
        >>> combined([row | {"bleu": 30}, row | {"bleu": 31}])[0]["bleu_spread"]
        0.5
    """
    table = []
    for place in dict.fromkeys((row["row"], row["change"]) for row in rows):
        same = [row for row in rows if (row["row"], row["change"]) == place]
        bleu = statistics.mean(row["bleu"] for row in same)
        table.append(
            {
                "row": place[0],
                "change": place[1],
                "perplexity": round(statistics.mean(row["perplexity"] for row in same), 2),
                "bleu": round(bleu, 2),
                "bleu_spread": round(max(abs(row["bleu"] - bleu) for row in same), 2),
                "parameters": same[0]["parameters"],
                "seeds": len(same),
            }
        )
    return table


if __name__ == "__main__":
    command_line.run(main)
