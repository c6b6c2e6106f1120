"""Every file of research/configs/ trains: three updates of a narrow model on a few examples."""

import pathlib

import pytest
from narrow_training import NARROW, train_narrow

CONFIGS = sorted((pathlib.Path(__file__).parents[1] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_three_updates(path, tmp_path):
    assert train_narrow(path, tmp_path).has_checkpoint


@pytest.mark.slow
def test_three_updates_at_full_size(tmp_path):
    """All sizes but the vocabulary, which the text limits."""
    (path,) = (path for path in CONFIGS if path.stem == "wmt14_en_fr_big")
    options = {key: value for key, value in NARROW.items() if not key.startswith("model.")}
    assert train_narrow(path, tmp_path, options).has_checkpoint
