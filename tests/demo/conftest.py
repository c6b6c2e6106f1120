"""Fixtures of the demo's tests: a small run as a model."""

import pytest


@pytest.fixture(scope="session")
def model(run):
    from tf_transformer.demo.models import RunModel

    return RunModel(run)
