"""tf-transformer pipeline: a chain runs, continues where it stopped, and loses nothing."""

import dataclasses
import json
import pathlib
import re

import pytest
import yaml
from conftest import small_config

from tf_transformer.commands import command_line, pipeline
from tf_transformer.commands.pipeline_file import read_steps
from tf_transformer.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]

# Two commands of a user: one copies a file, or fails; the other joins two files.
MODULE = """
import pathlib
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath

def copy(source: LocalPath, to: LocalPath, unless: str = "", times: int = 1) -> None:
    pathlib.Path(to).write_text(pathlib.Path(source).read_text() * times)
    with open("calls.txt", "a") as calls:
        calls.write(to + "\\n")
    if unless and pathlib.Path(unless).exists():
        raise InputError("stopped half-way")

def join(one: LocalPath, other: LocalPath, output: LocalPath) -> None:
    texts = [pathlib.Path(path).read_text() for path in (one, other)]
    pathlib.Path(output).write_text("".join(texts))
"""
STEPS = """
first:
  own_steps:copy: {source: $START/a.txt, to: b.txt}
second:
  own_steps:copy:
    source: b.txt
    unless: stop
    to: c.txt
last:
  own_steps:join: {one: $START/a.txt, other: c.txt, output: d.txt}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("START", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in {"own_steps.py": MODULE, "steps.yaml": STEPS, "a.txt": "a\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "stop").touch()
    return tmp_path


def run(capfd, *words) -> tuple[int | str | None, str, str]:
    """The exit status of the command, and what it prints."""
    status: int | str | None = 0
    try:
        command_line.run(pipeline.main, ["steps.yaml", *words])
    except SystemExit as end:
        status = end.code
    return status, *capfd.readouterr()


def states(plan: str) -> list[str]:
    """The states in a table."""
    return [row.split("  ")[2].strip() for row in re.sub("  +", "  ", plan).splitlines()[1:]]


def change(path: str, old: str, new: str) -> None:
    text = pathlib.Path(path).read_text()
    assert old in text
    pathlib.Path(path).write_text(text.replace(old, new))


def test_a_pipeline_continues_where_it_stopped_and_then_does_nothing(folder, capfd):
    _, plan, _ = run(capfd, "--dry_run")
    assert states(plan) == ["to do"] * 3
    assert not (folder / "b.txt").exists()

    status, _, errors = run(capfd)
    assert status == 1
    assert "error: stopped half-way" in errors
    assert "[2/3] second: stopped. The same command continues here." in errors
    _, plan, _ = run(capfd, "--dry_run")
    assert states(plan) == ["done", "to resume", "to do"]

    (folder / "stop").unlink()
    status, plan, errors = run(capfd)
    assert status == 0
    assert states(plan) == ["done"] * 3
    assert "[3/3] last: done in 0:00:0" in errors
    assert (folder / "d.txt").read_text() == "a\na\n"
    assert (folder / "calls.txt").read_text().split() == ["b.txt", "c.txt", "c.txt"]
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.glob("*.txt"))
    assert run(capfd)[::2] == (0, "")
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.glob("*.txt")) == before

    # The same content elsewhere changes nothing; other content or options do.
    (folder / "moved").mkdir()
    (folder / "a.txt").rename(folder / "moved" / "a.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("START", str(folder / "moved"))
        assert states(run(capfd, "--dry_run")[1]) == ["done"] * 3
        (folder / "b.txt").write_text("other\n")
        status, _, _ = run(capfd)
        assert "step second: c.txt belongs to a start with another input" in str(status)
        assert "another source. Give the options of that start, or move it away" in str(status)
        change("steps.yaml", "to: b.txt}", "to: b.txt, times: 2}")
        status, _, _ = run(capfd, "--until", "first")
        assert "step first: b.txt belongs to" in str(status)
        assert "times was None, now 2" in str(status)
        assert (folder / "b.txt").read_text() == "other\n"
        (folder / "b.txt").unlink()
        assert states(run(capfd, "--dry_run")[1]) == ["to do", "to check", "to check"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("own_steps:join", "joining", "step last: unknown command 'joining'; expected "),
        ("own_steps:join", "own_steps:cut", "'own_steps:cut' cannot be imported"),
        ("other: c.txt", "other: e.txt", "other: e.txt does not exist, and no earlier step writes"),
        ("$START/a.txt, to", "$ELSEWHERE/a.txt, to", "$ELSEWHERE is not set"),
        ("one: ", "ones: ", "step last has the wrong option"),
        (", output: d.txt", "", "step last has the wrong option"),
        ("output: d.txt", "output: c.txt", "expected a different file for each output"),
        ("last:", "first:", "steps.yaml: line 2: first stands twice"),
        ("last:", "last: 3\nother:", "step last must be a command with its options"),
        ("own_steps:join: {", "own_steps:join: [", "steps.yaml: while parsing"),
    ],
)
def test_all_steps_are_checked_before_one_runs(folder, capfd, old, new, message):
    change("steps.yaml", old, new)
    status, _, _ = run(capfd)
    assert message in str(status)
    assert not (folder / "b.txt").exists()


def test_a_wrong_option_is_named(folder, capfd):
    assert "expected a step of steps.yaml: first" in str(run(capfd, "--until", "third")[0])
    change("steps.yaml", "one: ", "ones: ")
    assert "unknown option --ones; did you mean --one?" in run(capfd)[2]


CHAIN = """
back:
  train:
    run_dir: back
    config: small.yaml
    data: {corpora: [{format: generated, pairs: 60}]}
synthetic:
  synthesize: {run_dir: $ROOT/pretrained/tatoeba-de-en, text: german.txt, to: synthetic}
forward:
  train:
    run_dir: forward
    config: small.yaml
    data:
      corpora:
        - {format: generated, pairs: 60}
        - {path: synthetic/pairs.jsonl, columns: [target, source], weight: 2}
model:
  export: {run_dir: forward, to: model, format: run, average: 2}
lines:
  translate: {run_dir: "forward,model", input: a.txt, output: lines.txt}
scores:
  evaluate: {run_dir: model, source: a.txt, reference: a.txt, seen: false, scores_output: s.json}
"""


@pytest.mark.slow
def test_the_commands_of_this_project_are_a_chain(folder, capfd, monkeypatch):
    options = dataclasses.asdict(small_config())
    small = {name: options[name] for name in ("model", "train", "decode")}
    for name in ("vocabulary_size", "batch_tokens", "max_length", "held_out"):
        small.setdefault("data", {})[name] = options["data"][name]
    (folder / "small.yaml").write_text(yaml.safe_dump(small))
    (folder / "steps.yaml").write_text(CHAIN)
    (folder / "a.txt").write_text("twenty-one\nforty-two\n")
    (folder / "german.txt").write_text("Guten Morgen!\nIch bin müde.\n")
    monkeypatch.setenv("ROOT", str(ROOT))
    status, plan, errors = run(capfd, "--until", "synthetic")
    assert (status, states(plan)) == (0, ["done"] * 2), errors
    status, plan, errors = run(capfd)
    assert status == 0, errors
    assert states(plan) == ["done"] * 6
    assert "bleu" in plan.split("\n")[0]
    assert json.loads((folder / "s.json").read_text())["chrf"] >= 0
    assert states(run(capfd, "--dry_run")[1]) == ["done"] * 6
    change("small.yaml", "steps: 4", "steps: 6")
    assert "back belongs to a start with another input" in str(run(capfd)[0])


def test_a_file_of_filters_is_an_input_of_its_step(folder):
    data = {"train_source": "a.txt", "train_target": "a.txt", "clean": ["tags", "f.yaml"]}
    steps = {"training": {"train": {"run_dir": "r", "data": data}}}
    (folder / "steps.yaml").write_text(yaml.safe_dump(steps))
    with pytest.raises(InputError, match=r"data\.clean: f\.yaml does not exist"):
        read_steps("steps.yaml")
    (folder / "f.yaml").touch()
    (step,) = read_steps("steps.yaml")
    assert step.inputs["data.clean"] == ["f.yaml"]


def test_the_steps_of_the_guide_are_accepted(folder):
    page = (ROOT / "docs" / "guides" / "pipelines.md").read_text("utf-8")
    (folder / "steps.yaml").write_text(re.search("```yaml\n(.*?)```", page, re.DOTALL)[1])
    for name in ("pairs.en", "pairs.de", "more.de", "test.en", "test.de"):
        (folder / name).touch()
    steps = read_steps("steps.yaml")
    assert [step.name for step in steps] == ["back", "synthetic", "forward", "model", "scores"]
    assert [step.outputs for step in steps][-2:] == [["runs/model"], ["runs/scores.json"]]
    assert steps[2].reads(steps[1].outputs)
    assert not steps[2].reads(steps[0].outputs)
