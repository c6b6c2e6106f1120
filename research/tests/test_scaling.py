"""research/scaling: its fits, and the hours of the paper's training runs."""

import json

import numpy as np
import pytest

from research import scaling


def made(part, coefficients, count=12):
    """Sizes at random, and their seconds by a formula with these coefficients."""
    rng = np.random.default_rng(1)
    names = ("batch", "beam", "steps", "source", "vocabulary")
    sizes = [dict(zip(names, rng.integers(1, 100, 5), strict=True)) for _ in range(count)]
    return sizes, [scaling.predicted(part, coefficients, each) for each in sizes]


def test_a_fit_finds_the_coefficients_of_its_formula():
    expected = [1e-3, 2e-5, 3e-8, 4e-7]
    sizes, seconds = made("decoding", expected)
    np.testing.assert_allclose(scaling.fit("decoding", sizes, seconds), expected, rtol=1e-6)
    assert scaling.left_out_error("decoding", sizes, seconds) < 1e-6


def test_no_coefficient_is_negative():
    sizes, seconds = made("decoding", [1e-3, 2e-5, 3e-6, -1e-8])
    found = scaling.fit("decoding", sizes, seconds)
    assert found[3] == 0
    assert (found >= 0).all()


def test_a_wrong_formula_has_an_error():
    sizes = [{"pairs": n} for n in (1, 2, 4, 8)]
    assert scaling.left_out_error("corpus", sizes, [n["pairs"] ** 2 for n in sizes]) > 0.4


def test_a_training_takes_the_days_of_the_paper_on_its_gpus():
    """Section 5.2: 12 hours and 3.5 days on 8 P100; the table is for one."""
    base, big = scaling.trainings()
    assert base["P100"] == pytest.approx(8 * 12 / 24, rel=0.1)
    assert big["P100"] == pytest.approx(8 * 3.5, rel=0.01)
    assert base["H100"] == pytest.approx(base["P100"] * 9.5 / 989, abs=0.01)


def test_a_reduction_is_measured_in_a_process_of_its_own():
    (small, large) = (
        scaling.call("research.scaling:reduction", replicas=2, bytes=size)
        for size in (4_000, 40_000_000)
    )
    assert 0 < small["seconds"] < large["seconds"]


def test_measurements_are_written_with_their_formula(tmp_path, monkeypatch):
    calls = []

    def call(place, **sizes):
        calls.append(place)
        return sizes | {"seconds": 1e-3 * sizes["steps"]}

    monkeypatch.setattr(scaling, "call", call)
    scaling.main("decoding", str(tmp_path / "found.json"))
    (row,) = json.loads((tmp_path / "found.json").read_text())["measurements"]
    assert row["coefficients"]["a"] == pytest.approx(1e-3)
    assert row["error"] == 0
    assert len(row["measurements"]) == len(calls) > 10


def test_a_search_is_measured_at_its_sizes():
    found = scaling.decoding(batch=1, beam=2, steps=3, source=4, vocabulary=64)
    assert found["seconds"] > 0
