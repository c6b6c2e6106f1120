"""Every file of configs/ trains: three updates of a narrow model on a few examples."""

import pathlib

import pytest
import yaml
from narrow_training import NARROW, train_narrow

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import check

ROOT = pathlib.Path(__file__).parents[1]
# All files but the chain of commands, whose last training tests/test_pretrained.py compares.
CONFIGS = sorted({*ROOT.glob("configs/*.yaml")} - {ROOT / "configs" / "multi30k_best.yaml"})
ONE_OF_EACH_TASK = ("multi30k", "parsing", "classification", "language_model")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in ONE_OF_EACH_TASK else pytest.mark.slow)
        for path in CONFIGS
    ],
    ids=lambda path: path.stem,
)
def test_three_updates(path, tmp_path):
    run = train_narrow(path, tmp_path)
    assert run.has_checkpoint
    assert run.metrics.read_text().count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wmt14_en_de_base", "wmt14_en_de_big"])
def test_three_updates_at_full_size(name, tmp_path):
    """All sizes but the vocabulary, which the text limits."""
    options = {key: value for key, value in NARROW.items() if not key.startswith("model.")}
    assert train_narrow(ROOT / "configs" / f"{name}.yaml", tmp_path, options).has_checkpoint


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_text_stands_in_the_data_folder(path):
    """No path leads out of the folder of the command, or of TF_TRANSFORMER_DATA."""
    data = yaml.safe_load(path.read_text("utf-8"))["data"]
    files = [data[name] for name in data if name.startswith(("train_", "valid_"))]
    assert not [file for file in files if file.startswith(("/", "~", "build")) or ".." in file]


def test_a_recipe_finds_its_text_in_the_data_folder(tmp_path, monkeypatch):
    data = DataConfig(**yaml.safe_load((ROOT / "configs/multi30k.yaml").read_text("utf-8"))["data"])
    (train,), (valid,) = data.corpora, data.valid_corpora
    for path in (train.source, train.target, valid.source, valid.target):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("a\n")
    monkeypatch.setenv("TF_TRANSFORMER_DATA", str(tmp_path))
    check(data)
