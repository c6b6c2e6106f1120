"""research/ablations: trains what is missing, scores a run once, and averages over seeds."""

import json

import pytest

from research import ablations, equal_budgets
from research.figures import plots
from tf_transformer.commands import command_line, train
from tf_transformer.errors import InputError


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Calls the benchmark with two rows; training writes a log, and seed n has n + 20 BLEU."""
    trained = []
    rows = {"base": {"–": {}}, "A": {"1 heads": {"model.num_heads": 1}}}
    monkeypatch.setitem(ablations.TABLES, "paper", ablations.Table({}, rows))

    def train(run, model, options):
        trained.append(options | model.options)
        run.mkdir(parents=True, exist_ok=True)
        (run / "metrics.jsonl").write_text(
            json.dumps({"step": options["train.steps"], "val_perplexity": 9.5}) + "\n"
        )

    def measured(run, texts, references, limits):
        return [{"bleu": 20.0 + int(run.name[-1]), "parameters": 7, "model": run.name}]

    monkeypatch.setattr(equal_budgets, "train", train)
    monkeypatch.setattr(equal_budgets, "measured", measured)
    (tmp_path / "text").write_text("one\n")

    def call(**options):
        paths = {name: str(tmp_path / "text") for name in ("source", "reference")}
        output = str(tmp_path / "found.json")
        ablations.main(str(tmp_path / "runs"), **paths, output=output, **options)
        return json.loads((tmp_path / "found.json").read_text())["measurements"]

    return call, trained


def test_each_row_has_the_mean_and_the_spread_of_its_seeds(work):
    call, trained = work
    base, heads = call(updates=5)
    assert base == {
        **{"row": "base", "change": "–", "perplexity": 9.5, "bleu": 21.5, "bleu_spread": 0.5},
        **{"parameters": 7, "seeds": 2},
    }
    assert heads["change"] == "1 heads"
    names = ("train.seed", "model.num_heads")
    options = [tuple(each.get(name) for name in names) for each in trained]
    assert options == [(1, None), (1, 1), (2, None), (2, 1)]


def test_trainings_of_the_result_file_are_not_repeated(work):
    call, trained = work
    seeds = [(row["seeds"], row["bleu_spread"]) for row in call(updates=5, seeds=1)]
    assert seeds == [(1, None), (1, None)]
    assert [row["seeds"] for row in call(updates=5)] == [2, 2]
    assert call(updates=5) == call(updates=5)
    assert len(trained) == 4


def test_all_trainings_have_the_options_of_the_command(work):
    call, trained = work
    call(updates=5, options={"train.seed": 0, "model.num_heads": 8, "data.max_length": 9})
    assert [each["model.num_heads"] for each in trained] == [8, 1, 8, 1]
    assert all(each["data.max_length"] == 9 and each["train.seed"] for each in trained)


@pytest.mark.parametrize("options", [{"updates": 6}, {"updates": 5, "options": {"data.seed": 6}}])
def test_a_result_file_of_other_budgets_is_an_error(work, options):
    call, trained = work
    call(updates=5)
    with pytest.raises(InputError, match=r"'updates': 5.* 6.*another --output"):
        call(**options)
    assert len(trained) == 4


@pytest.mark.parametrize("table", ablations.TABLES.values(), ids=ablations.TABLES)
def test_all_rows_are_configurations(table):
    names = [change for group in table.rows.values() for change in group]
    assert len(set(names)) == len(names)
    for group in table.rows.values():
        for options in group.values():
            words = [f"--{name}={value}" for name, value in (table.base | options).items()]
            command = ["--config", ablations.CONFIG, "--run_dir", "unused", *words]
            command_line.read_options(train.main, command)  # or it exits


def test_the_plot_has_a_line_for_each_change_with_the_distance_of_its_seeds():
    row = {"perplexity": 8.0, "parameters": 9}
    rows = [
        row | {"row": group, "change": change, "bleu": bleu}
        for group, change, bleu in (("base", "–", 30), ("A", "1 head", 28), ("A", "1 head", 29))
    ]
    (axis,) = plots.ablations({"measurements": ablations.combined(rows)}).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["–", "1 head"]
    segments = [lines.get_segments()[0] for lines in axis.collections]
    assert [segment[:, 0].tolist() for segment in segments] == [[30, 30], [28, 29]]
