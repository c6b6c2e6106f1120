"""Metrics by name and direction; COMET with a stand-in for its package."""

import json
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.commands import evaluate
from tf_transformer.errors import InputError
from tf_transformer.registry import TASKS
from tf_transformer.tasks import comet, get, metrics
from tf_transformer.tasks.comet import Comet
from tf_transformer.tasks.metrics import LOSS, METRICS, gain, score_all

LOWER_IS_BETTER = {"loss", "perplexity", "ter"}


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_metric_of_a_task_has_a_name_and_a_direction(name):
    task = get(name)
    names = [each.name for each in (*task.metrics, *task.metrics_on_request)]
    assert len({*names}) == len(names)
    for each in [*names, "loss", "perplexity", "comet"]:
        metric = task.metric(each)
        assert (metric.name, metric.lower_is_better) == (each, each in LOWER_IS_BETTER)


class Length:
    """A metric of a user: the mean ratio of lengths of predictions and inputs."""

    name = "length"
    lower_is_better = False

    def __init__(self):
        self.calls = 0

    def score(self, inputs, predictions, references):
        self.calls += 1
        ratios = [len(x) / len(y) for x, y in zip(predictions, inputs, strict=True)]
        return {"length": sum(ratios) / len(ratios), "longest": max(map(len, predictions))}


LENGTH = Length()


def test_a_metric_is_found_by_its_registered_name_or_its_module(monkeypatch):
    monkeypatch.setattr(METRICS, "_items", dict(METRICS._items))
    translation = get("translation")
    for register in (LENGTH, "tasks.test_metrics:LENGTH"):
        metrics.register("mine", register)
        assert translation.metric("mine").name == "length"
    assert translation.metric("tasks.test_metrics:LENGTH").name == "length"
    found = translation.with_metrics("mine", "ter").score(["ab"], ["abcd"], [["abcd"]])
    assert (found["length"], found["ter"], found["bleu"] >= 0) == (2.0, 0.0, True)
    assert "ter" not in translation.score([], ["abcd"], [["abcd"]])
    with pytest.raises(InputError, match=r"metric .no\.module:X. cannot be imported"):
        translation.metric("no.module:X")


def test_a_score_that_came_with_another_is_not_computed_again():
    first, longest = Length(), SimpleNamespace(name="longest", score=None)
    assert score_all([first, longest, first], ["a"], ["bc"], [[""]])["longest"] == 2
    assert first.calls == 1


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.booleans())
def test_the_highest_gain_is_that_of_the_best_score(scores, lower_is_better):
    metric = SimpleNamespace(lower_is_better=lower_is_better)
    best = max(scores, key=lambda score: gain(metric, score))
    assert best == (min(scores) if lower_is_better else max(scores))
    assert gain(metric, gain(metric, best)) == best


def test_given_outputs_have_no_score_that_needs_a_model():
    with pytest.raises(InputError, match="loss needs the probabilities of a model"):
        LOSS.score([], ["a"], [["a"]])


# --- COMET -----------------------------------------------------------------------------------


@pytest.fixture
def comet_package(monkeypatch):
    """A stand-in for the package comet, whose score is the share of outputs equal to sources."""
    loaded = []

    def predict(data, batch_size, gpus):
        loaded.append((data, batch_size, gpus))
        equal = [float(row["src"] == row["mt"]) for row in data]
        return SimpleNamespace(scores=equal, system_score=sum(equal) / len(equal))

    package = SimpleNamespace(
        download_model=lambda name: f"folder of {name}",
        load_from_checkpoint=lambda path: SimpleNamespace(predict=predict, path=path),
    )
    monkeypatch.setitem(sys.modules, "comet", package)
    comet._load.cache_clear()
    yield loaded
    comet._load.cache_clear()


def test_comet_reads_sources_outputs_and_the_first_reference(comet_package):
    scores = Comet(batch_size=3).score(["a", "b"], ["a", "x"], [["A", " "], ["", "B"]])
    assert scores == {"comet": 0.5, "comet_model": "Unbabel/wmt22-comet-da"}
    rows = [{"src": "a", "mt": "a", "ref": "A"}, {"src": "b", "mt": "x", "ref": "B"}]
    assert comet_package == [(rows, 3, 0)]
    with pytest.raises(InputError, match="a reference for each translation"):
        Comet().score(["a"], ["a"], [[""]])
    with pytest.raises(InputError, match=r"got 0 sources and 1 translations\. Give"):
        Comet().score([], ["a"], [["a"]])


def test_comet_without_its_package_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    comet._load.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[comet\]'"):
        Comet().score(["a"], ["a"], [["a"]])


def test_the_command_computes_metrics_that_are_asked_for(comet_package, tmp_path, capsys):
    for name, text in (("in", "a b\nc d\n"), ("out", "a b\nx y\n"), ("ref", "a b\nx z\n")):
        (tmp_path / name).write_text(text)
    source, out, reference = (str(tmp_path / name) for name in ("in", "out", "ref"))
    files = {"hypotheses": out, "reference": reference, "metric": "ter,comet"}
    evaluate.main(**files, source=source)
    *_, line, scores = capsys.readouterr().out.splitlines()
    assert json.loads(scores)["comet"] == 0.5
    assert {"bleu", "signature", "chrf", "ter"} <= json.loads(scores).keys()
    assert line.endswith("ter 25, comet 0.5")
    with pytest.raises(InputError, match="Give --source"):
        evaluate.main(**files)
