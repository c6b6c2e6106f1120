"""Training runs with equal CPU time: the text, the end of a training run, and rows of scores."""

import json
import os
import pathlib
import time

import pytest

from research import first_defaults
from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder


def test_fixed_defaults_are_the_defaults_of_python():
    config = Config()
    for name, value in first_defaults.FIXED.items():
        group, option = name.split(".")
        assert getattr(getattr(config, group), option) == value
    assert config.train.validate_every == config.train.steps == 0


def lines_of(path):
    return pathlib.Path(path).read_text().splitlines()


def test_the_sample_is_the_first_pairs_and_tatoeba_is_divided(tmp_path, monkeypatch):
    monkeypatch.setattr(first_defaults, "SAMPLE", 2)
    monkeypatch.setattr(first_defaults.split_text.main, "__defaults__", (1, 1, 1))
    for corpus, name in (("multi30k", "train"), ("tatoeba_en_de", "all")):
        (tmp_path / corpus).mkdir()
        for side in ("en", "de"):
            lines = "".join(f"{side} {n}\n" for n in range(40))
            (tmp_path / corpus / f"{name}.{side}").write_text(lines)
    corpora = first_defaults.corpora(tmp_path, tmp_path / "runs", "1,2,3")
    assert [corpus.minutes for corpus in corpora] == [1, 2, 3]
    trains = [[len(lines_of(path)) for path in corpus.train] for corpus in corpora]
    assert trains == [[2, 2], [40, 40], [38, 38]]
    assert [len(lines_of(path)) for path in corpora[2].test] == [1, 1]


def test_cpu_time_is_of_the_process():
    before, start = first_defaults.cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() < start + 0.3:
        pass
    assert first_defaults.cpu_seconds(os.getpid()) - before == pytest.approx(0.3, abs=0.1)
    assert first_defaults.cpu_seconds(2**22 + 1) == 0


def test_a_training_that_has_scores_is_not_repeated(tmp_path, monkeypatch):
    corpus = first_defaults.Corpus("Small", ["x/train.en", "x/train.de"], ["a", "b"], 1.0)
    trained = []

    def train(run, corpus, arm, core):
        trained.append((arm, core))
        run.path.mkdir()
        run.save_config(Config())
        run.metrics.write_text(json.dumps({"step": 7}) + "\n")

    monkeypatch.setattr(first_defaults, "train", train)
    scores = {"5": {"bleu": 1.234, "chrf": 2.0}, "best": {"bleu": 3.0}}
    monkeypatch.setattr(first_defaults, "score", lambda run, corpus, average, core: scores[average])
    rows = [first_defaults.outcome(tmp_path, corpus, "fixed", "0") for _ in range(2)]
    assert trained == [("fixed", "0")]
    assert rows[0] == rows[1]
    assert (rows[0]["bleu"], rows[0]["bleu_best"], rows[0]["updates"]) == (1.23, 3.0, 7)
    assert RunFolder(tmp_path / "x_fixed").config.is_file()


def test_a_missing_folder_of_data_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_TRANSFORMER_DATA", raising=False)
    with pytest.raises(InputError, match="TF_TRANSFORMER_DATA"):
        first_defaults.main(str(tmp_path))
