"""Strategies by name."""

import pytest

from tf_transformer.errors import InputError
from tf_transformer.training.strategy import make_strategy


def test_an_unknown_strategy_is_an_error():
    with pytest.raises(InputError, match="must be auto, one, mirrored or multi_worker, got 'many'"):
        make_strategy("many")


def test_several_workers_need_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(InputError, match="needs the environment variable TF_CONFIG"):
        make_strategy("multi_worker")
