"""How much of a test set a run has seen, on a run of the generated corpus."""

import dataclasses
import json
import shutil

import pytest

from tf_transformer.commands import evaluate
from tf_transformer.data.training_keys import keys_of
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks.seen import Seen, compare_with_training, describe
from tf_transformer.tasks.task import TestSet
from tf_transformer.tasks.translation import TRANSLATION


@pytest.fixture(scope="module")
def loaded(run):
    return Run.load(run)


@pytest.fixture(scope="module")
def training(loaded):
    return list(TRANSLATION.load_splits(loaded.config).train)


@pytest.fixture
def earlier(run, tmp_path):
    """The run as an earlier version would have left it: without keys of its text."""
    shutil.copytree(run, tmp_path / "run")
    RunFolder(tmp_path / "run").keys.unlink()
    return Run.load(tmp_path / "run")


def compared(run, test, outputs):
    """The facts about one test set; {} without facts."""
    return compare_with_training(TRANSLATION, run, {"": test}, {"": outputs}).get("", {})


def test_lines_are_compared_by_source_target_and_pair():
    test = TestSet(["a", "b", "c", "d"], ["A", "B ", "C", ""], [["x", "Y", "", "D"]])
    text = [("a", "A"), ("z", "B"), (" c", "X"), ("q", "D"), ("p", "")]
    other = TestSet(["p", "p"], ["D", "q"])
    seen, of_other = Seen.of([test, other], keys_of(text))
    assert seen.sources.tolist() == [True, False, True, False]
    assert seen.targets.tolist() == [True, True, False, True]
    assert seen.pairs.tolist() == [True, False, False, False]
    assert seen.either.tolist() == [True, True, True, True]
    assert of_other.sources.tolist() == [True, True]
    assert of_other.targets.tolist() == [True, False]
    assert not of_other.pairs.any()


def test_scores_of_both_parts_are_those_of_their_lines(loaded, training):
    """Oracle: the scores of each part alone."""
    (one, _), *_ = training
    test = TestSet([one, "no such number", "nor this"], ["x", "keine Zahl", "auch keine"])
    outputs = ["y", "keine Zahl", "eine"]
    parts = compared(loaded, test, outputs)
    assert [parts["seen"][name] for name in ("sources", "targets", "pairs")] == [1, 0, 0]
    assert parts["seen"]["bleu"] == TRANSLATION.score([], outputs[:1], [["x"]])["bleu"]
    rest = TRANSLATION.score([], outputs[1:], [test.references[1:]])
    assert {name: parts["unseen"][name] for name in rest} == rest
    assert describe(parts).startswith("seen in training: 1 sources, 0 targets, 0 pairs of 3; BLEU")


def test_a_part_without_lines_has_no_scores(loaded):
    parts = compared(loaded, TestSet(["q"], ["Q"]), ["Q"])
    assert parts["seen"]["sentences"] == 0
    assert "bleu" not in parts["seen"]
    assert describe(parts) == "seen in training: 0 sources, 0 targets, 0 pairs of 1"


def test_the_validation_text_as_a_test_set_gives_a_warning(loaded, capsys):
    valid = TRANSLATION.load_splits(loaded.config).valid
    test = TRANSLATION.test_set(valid)
    compared(loaded, test, test.references)
    assert "warning: this test set is the validation text of the run" in capsys.readouterr().err
    fewer = TestSet(test.inputs[1:], test.references[1:])
    compared(loaded, fewer, fewer.references)
    assert capsys.readouterr().err == ""
    both = {"a.en-de": fewer, "b.en-de": test}
    outputs = {name: one.references for name, one in both.items()}
    assert list(compare_with_training(TRANSLATION, loaded, both, outputs)) == list(both)
    assert "warning: b.en-de is the validation text of the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"train_source": "no.en", "train_target": "no.de"}, "no.en is not a file"),
        ({"generated_pairs": 50}, "the text has changed since the training"),
    ],
)
def test_a_text_that_cannot_be_read_is_named(earlier, capsys, change, reason):
    data = dataclasses.replace(earlier.config.data, corpora=(), **change)
    other = dataclasses.replace(earlier, config=dataclasses.replace(earlier.config, data=data))
    assert compared(other, TestSet(["a"], ["b"]), ["b"]) == {}
    note = capsys.readouterr().err
    assert note == f"seen in training: not known, because {reason}\n"


def test_the_keys_of_a_run_say_what_its_text_says(loaded, earlier, training):
    """Oracle: the text, which a run of an earlier version reads."""
    inputs = [source for source, _ in training[::40]] + ["no such number"] * 3
    test = TestSet(inputs, [target for _, target in training[::40]] + ["a", training[0][1], "b"])
    facts = compared(loaded, test, test.references)
    assert facts == compared(earlier, test, test.references)
    number = len(training[::40])
    assert [facts["seen"][name] for name in ("sources", "targets")] == [number, number + 1]


def test_the_keys_of_a_run_need_no_text(loaded, training):
    data = dataclasses.replace(loaded.config.data, train_source="no.en", train_target="no.de")
    moved = dataclasses.replace(loaded, config=dataclasses.replace(loaded.config, data=data))
    facts = compared(moved, TestSet([training[0][0]], ["x"]), ["x"])
    assert facts["seen"]["sources"] == 1


def test_keys_that_are_cut_short_are_an_error(earlier, capsys):
    earlier.folder.keys.write_bytes(b"12345678" * 3)
    assert compared(earlier, TestSet(["a"], ["b"]), ["b"]) == {}
    assert "training_keys.bin is cut short: expected 16 bytes for" in capsys.readouterr().err


def test_the_command_prints_what_was_seen_and_an_interval(run, training, tmp_path, capsys):
    for name, side in (("in", 0), ("out", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in training[:3]))
    files = str(tmp_path / "in"), str(tmp_path / "out")
    evaluate.main(str(run), *files)
    *lines, last = capsys.readouterr().out.splitlines()
    scores = json.loads(last)
    assert scores["seen"]["pairs"] == scores["seen"]["sentences"] == 3
    assert len(scores["bleu_interval"]) == 2
    assert "confidence interval of BLEU" in lines[0]
    assert lines[1] == "seen in training: 3 sources, 3 targets, 3 pairs of 3"
    evaluate.main(str(run), *files, seen=False, task_options={"resamples": 0})
    _, last = capsys.readouterr().out.splitlines()
    assert not {"seen", "unseen", "bleu_interval"} & json.loads(last).keys()


def test_a_run_without_a_record_of_its_text_says_so(earlier, capsys):
    earlier.folder.text.unlink()
    assert compared(earlier, TestSet(["a"], ["b"]), ["b"]) == {}
    assert "the run does not say which text it was trained on" in capsys.readouterr().err
