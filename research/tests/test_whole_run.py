"""research/whole_run: the time of each part of a training run."""

import json
import types

from research import whole_run


def test_parts_exclude_each_other(monkeypatch):
    """By hand: outer has 3 s of its own and calls inner twice, 2 s each."""
    now = [0.0]
    monkeypatch.setattr(whole_run, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))

    def inner():
        now[0] += 2

    def outer():
        now[0] += 3
        module.inner()
        module.inner()

    module = types.SimpleNamespace(inner=inner, outer=outer)
    monkeypatch.setattr(whole_run, "_object", {"module": module}.get)
    totals = whole_run.timed({"one": "module.inner", "two": "module.outer"})
    module.outer()
    assert totals == {"one": [2, 4], "two": [1, 3]}


def test_all_parts_are_there():
    for place in whole_run.PARTS.values():
        owner, _, name = place.rpartition(".")
        assert callable(getattr(whole_run._object(owner), name))


def test_the_rest_is_start_and_end(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_run, "call", lambda place, words: {whole_run.UPDATES: [9, 0.0]})
    output = tmp_path / "found.json"
    whole_run.main("configs/demo.yaml", {"train.steps": 3}, str(output))
    rows = json.loads(output.read_text())["measurements"]
    assert {row["part"]: row["share"] for row in rows} == {whole_run.UPDATES: 0, whole_run.REST: 1}
