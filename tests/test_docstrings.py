"""Every example in a docstring runs, and prints what it shows."""

import doctest
import importlib
import pathlib

import keras
import numpy as np
import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "tf_transformer"
EXAMPLES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path.read_text("utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
}
# These show the output of `make demo`. Here a smaller run stands in for it: examples must run, but
# their output differs.
OF_DEMO = {name for name, text in EXAMPLES.items() if "runs/demo" in text or "served/demo" in text}

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="examples print TensorFlow's shapes"
)


class AnyOutput(doctest.OutputChecker):
    """Accepts every output; an exception still fails."""

    def check_output(self, want, got, optionflags):
        return True


def failures(name: str, checker: doctest.OutputChecker) -> str:
    """The report of the examples of a module that fail."""
    module = importlib.import_module(f"tf_transformer.{name}")
    names = vars(importlib.import_module("tf_transformer.layers")) | vars(module) | {"np": np}
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(checker, optionflags=options)
    report: list[str] = []
    for test in doctest.DocTestFinder().find(module, name, extraglobs=names):
        runner.run(test, out=report.append)
    assert runner.tries
    return "".join(report)


def test_there_are_examples():
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - OF_DEMO))
def test_examples_run_as_shown(name):
    assert failures(name, doctest.OutputChecker()) == ""


@pytest.mark.parametrize("name", sorted(OF_DEMO))
def test_examples_of_the_demo_run(name, readers_folder, monkeypatch):
    monkeypatch.chdir(readers_folder)
    assert failures(name, AnyOutput()) == ""
