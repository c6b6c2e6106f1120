"""Metadata of exports; tests/commands/test_commands.py reads the metadata of an export."""

import importlib.metadata

import keras
import pytest
import tensorflow as tf

from tf_transformer.config import Config, DataConfig
from tf_transformer.export import metadata
from tf_transformer.run.run import Run
from tf_transformer.tasks.translation import TRANSLATION


@pytest.mark.parametrize(
    ("options", "source", "target"),
    [
        ({"train_source": "x/a.en", "train_target": "b.de.gz"}, "en", "de"),
        ({"train_source": "a.txt", "train_target": "corpus"}, None, None),
        ({"train_source": "a.fr", "train_target": "a.tgt"}, "fr", None),
        ({"tfds": "wmt14_translate/de-en:1.0.0"}, "de", "en"),
        ({"tfds": "wmt14_translate/de-en", "tfds_reverse": True}, "en", "de"),
        ({"tfds": "my_corpus"}, None, None),
        ({"source_language": "fr", "target_language": "it"}, "fr", "it"),
    ],
)
def test_languages_are_those_in_the_names_of_the_data(options, source, target):
    facts = TRANSLATION.metadata(Config(data=DataConfig(**options)))
    assert facts["languages"] == {"source": source, "target": target}


def test_a_run_that_logged_fewer_scores_is_described(monkeypatch, tmp_path):
    """As earlier versions did."""
    monkeypatch.setattr(metadata, "updates_of", lambda *_: [10])
    log = '{"step": 5, "val_loss": 3.0, "val_bleu": 7.0}\n{"step": 10, "val_loss": 2.0}\n'
    (tmp_path / "metrics.jsonl").write_text(log)
    facts = metadata.training(Run.at(tmp_path, Config()), ("bleu", "chrf"))
    assert (facts["validation_bleu"], facts["validation_bleu_update"]) == (7.0, 5)
    assert (facts["validation_chrf"], facts["validation_loss"]) == (None, 2.0)


def test_versions_do_not_depend_on_the_names_of_distributions(monkeypatch):
    """TensorFlow is also installed as tensorflow-cpu or tf-nightly."""

    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    versions = {name: metadata.version(name) for name in metadata.PACKAGES}
    assert (versions["tensorflow"], versions["keras"]) == (tf.__version__, keras.__version__)
    assert "unknown" not in versions.values()
    assert metadata.version("no_such_package") == "unknown"
