"""Rows of the paper's Table 3 that fit a small corpus, with equal budgets and several seeds.

    python -m research.ablations --runs runs/ablations --source val.en --reference val.de \
        --output research/results/ablations.json
    python -m research.ablations --table regularization --runs runs/regularization \
        --updates 3000 --options '{"data.train_source": "a.en", "data.train_target": "a.de"}' ...

Each row changes one thing of the first row. `regularization` is a table of ways to learn more from
a small corpus. As in the paper, the scores are those of the development set.

The result file is written after each training run, and the same command again continues with those
that are not in it. So the training runs of a table can be spread over several days and machines.
"""

import json
import pathlib
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from research import equal_budgets
from research.equal_budgets import Model
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder

CONFIG = "research/configs/multi30k_quick.yaml"
PACKAGES = ("tensorflow", "keras", "sacrebleu")
Options = dict[str, Any]  # of train.py


class Table(NamedTuple):
    """Training runs that differ from the configuration, and among each other."""

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
    "A": {f"h {heads}": {"model.num_heads": heads} for heads in (1, 2, 8, 16)},
    "B": {f"d_k {size}": {"model.key_dim": size, "model.value_dim": 32} for size in (8, 16)},
    "C": {
        **{f"N {layers}": {"model.num_layers": layers} for layers in (2, 6)},
        **{f"d_model {size}": {"model.d_model": size} for size in (64, 192)},
        **{f"d_ff {size}": {"model.d_ff": size} for size in (128, 512)},
    },
    "D": {
        **{f"dropout {rate}": {"model.dropout_rate": rate} for rate in (0.0, 0.2)},
        **{f"label smoothing {rate}": {"train.label_smoothing": rate} for rate in (0.0, 0.2)},
    },
    "E": {"learned positions": {"model.position": "learned", "model.max_length": 256}},
}
REGULARIZATION_BASE: Options = {  # a model that is near its best score within a budget of minutes
    "data.vocabulary_size": 4000,
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
    output: str,
    table: Literal["paper", "regularization"] = "paper",
    updates: int = 1028,
    seeds: int = 2,
    options: dict[str, Any] | None = None,
) -> None:
    """Trains and scores each row, and prints the table.

    Args:
        runs: folder for the runs, one for each row and seed.
        source: file of the development set's sentences.
        reference: file of their translations.
        output: result file, for example research/results/ablations.json. Training runs in it are
            not repeated.
        table: which rows to train.
        updates: budget of each training run.
        seeds: training runs of each row.
        options: more options of train.py by name, equal for all rows, like data.train_source.
    """
    at_least_one(updates=updates, seeds=seeds)
    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    common = {"table": table, "updates": updates, "options": options or {}}
    trained = _trainings_in(output, common)
    done = {(training["change"], training["seed"]) for training in trained}
    for group, change, changed, seed in _trainings(TABLES[table], seeds):
        if (change, seed) in done:
            continue
        run = pathlib.Path(runs, f"{group}_{change.replace(' ', '_')}_{seed}")
        budget = {"train.steps": updates, "train.seed": seed}
        model = Model(run.name, CONFIG, changed)
        equal_budgets.train(run, model, TABLES[table].base | common["options"] | budget)
        scores = _scores(run, texts, references)
        trained.append({"row": group, "change": change, "seed": seed} | scores)
        results.save(output, combined(trained), PACKAGES, summary=common, trainings=trained)
    print(of_rows(combined(trained), left=2))


def _trainings_in(output: str, common: dict[str, Any]) -> list[dict[str, Any]]:
    """The training runs of a result file, none if there is no such file.

    Raises:
        InputError: for a file of another table, or of other updates or options.
    """
    if not pathlib.Path(output).is_file():
        return []
    result = results.load(output)
    if result["summary"] != common:
        raise InputError(
            f"{output} has results of {result['summary']}, but the command asks for {common}. "
            "Give another --output."
        )
    return result["trainings"]


def _trainings(table: Table, seeds: int) -> Iterator[tuple[str, str, Options, int]]:
    """Group, change, changed options and seed; all rows have one seed before any has two."""
    for seed in range(1, seeds + 1):
        for group, changes in table.rows.items():
            for change, options in changes.items():
                yield group, change, options, seed


def _scores(run: pathlib.Path, texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    log = RunFolder(run).metrics.read_text().splitlines()
    row = equal_budgets.measured(run, texts, references, [10**9])[0]
    scores = {name: row[name] for name in ("bleu", "parameters")}
    return {"perplexity": json.loads(log[-1])["val_perplexity"]} | scores


def combined(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each change: means over seeds, and the largest distance of a seed's BLEU from it.

    A row of one seed has no distance.

    Example:
        >>> row = {"row": "A", "change": "1 heads", "perplexity": 8.0, "parameters": 9}
        >>> combined([row | {"bleu": 30}, row | {"bleu": 31}])[0]["bleu_spread"]
        0.5
    """
    table = []
    for place in dict.fromkeys((row["row"], row["change"]) for row in rows):
        same = [row for row in rows if (row["row"], row["change"]) == place]
        bleu = statistics.mean(row["bleu"] for row in same)
        distances = [abs(row["bleu"] - bleu) for row in same]
        table.append(
            {
                "row": place[0],
                "change": place[1],
                "perplexity": round(statistics.mean(row["perplexity"] for row in same), 2),
                "bleu": round(bleu, 2),
                "bleu_spread": round(max(distances), 2) if len(same) > 1 else None,
                "parameters": same[0]["parameters"],
                "seeds": len(same),
            }
        )
    return table


if __name__ == "__main__":
    command_line.run(main)
