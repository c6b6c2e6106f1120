"""Fixtures of the demo's tests: a small run as a model."""

import pytest

from tf_transformer.run.run import Run


@pytest.fixture(scope="session")
def model(run):
    from tf_transformer.demo.models import RunModel

    return RunModel(Run.load(run))
