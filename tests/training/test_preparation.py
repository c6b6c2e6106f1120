"""What a training run reads: the validation examples that are scored are a sample of all."""

import dataclasses
import json

import numpy as np
import pytest
from conftest import small_config
from training.test_ownership import start, with_files

from tf_transformer import tasks
from tf_transformer.data.training_keys import keys_of, stored_keys
from tf_transformer.registry import options_of
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.text.codec import Codec
from tf_transformer.training import preparation

SHORT, LONG = 600, 300  # lines


@pytest.fixture
def sorted_text(tmp_path):
    """A function of a task: its configuration for a text that is sorted by length."""
    short = [f"word {number}" for number in range(SHORT)]
    lines = short + [f"a caption with the number {number}" for number in range(LONG)]
    trees = [f"(S (NP (NN a)) (VP {' '.join(f'(X {word})' for word in x.split())}))" for x in lines]
    rows = ["text\tlabel", *(f"{line}\t{number % 2}" for number, line in enumerate(lines))]
    for name, content in (("lines", lines), ("trees.mrg", trees), ("rows.tsv", rows)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in content))
    two = {
        f"{part}_{side}": "lines" for part in ("train", "valid") for side in ("source", "target")
    }
    files = {
        "translation": two,
        "parsing": dict.fromkeys(("train_file", "valid_file"), "trees.mrg"),
        "classification": dict.fromkeys(("train_file", "valid_file"), "rows.tsv"),
        "masked_language_modeling": dict.fromkeys(("train_file", "valid_file"), "lines"),
    }

    def config_of(task, **data):
        config = with_files(
            small_config(valid_score_examples=30),
            **{name: tmp_path / file for name, file in files[task].items()},
        )
        data = dataclasses.replace(config.data, **{"vocabulary_size": 500} | data)
        config = dataclasses.replace(config, data=data, task=options_of(task)(name=task))
        return tasks.for_run(config).complete(config)

    return config_of


def prepared(run_dir, config):
    return preparation.prepare(Run.at(run_dir, config), tasks.for_run(config))


@pytest.mark.parametrize(
    "task", ["translation", "parsing", "classification", "masked_language_modeling"]
)
def test_scores_and_the_check_of_an_export_take_texts_from_the_whole_validation_text(
    sorted_text, tmp_path, task
):
    scored = prepared(tmp_path / "run", sorted_text(task)).scored
    samples = RunFolder(tmp_path / "run").load_samples()
    assert len(scored.inputs) == len(scored.references) == 30
    for texts in (scored.inputs, samples):
        share = sum("caption" in text for text in texts) / len(texts)
        assert share == pytest.approx(LONG / (SHORT + LONG), abs=1 / len(texts))


def test_the_scored_texts_depend_on_the_validation_text_only(sorted_text, tmp_path):
    first = sorted_text("translation")
    other = sorted_text("translation", batch_tokens=900, vocabulary_size=400)
    other = dataclasses.replace(other, train=dataclasses.replace(other.train, seed=7))
    one, two = (prepared(tmp_path / str(n), each) for n, each in enumerate((first, other)))
    assert one.scored == two.scored
    assert one.scored.inputs == one.scored.references  # the rows stay together


def test_a_tuned_run_has_seen_the_words_of_its_origin_too(sorted_text, tmp_path):
    """If the words of the origin are not known, neither are those of the tuned run."""
    config = sorted_text("translation")
    origin, tuned, other = (RunFolder(tmp_path / name) for name in ("origin", "tuned", "other"))
    prepared(origin.path, config)
    own = ["caption", "number", "the", "with", "word"]
    assert Codec.load(origin.path).seen_words == own
    origin.words.write_text("house\n")
    train = dataclasses.replace(config.train, init_from=str(origin.path))
    prepared(tuned.path, dataclasses.replace(config, train=train))
    assert Codec.load(tuned.path).seen_words == sorted([*own, "house"])
    origin.words.unlink()
    prepared(other.path, dataclasses.replace(config, train=train))
    assert not other.words.exists()


def test_a_tuned_run_has_the_keys_of_its_origin_too(sorted_text, tmp_path):
    config = sorted_text("translation")
    origin, tuned, other = (RunFolder(tmp_path / name) for name in ("origin", "tuned", "other"))
    prepared(origin.path, config)
    (own,) = stored_keys(origin.keys)
    (expected,) = keys_of(tasks.for_run(config).load_splits(config).train)
    assert own.tolist() == expected.tolist()
    train = dataclasses.replace(config.train, init_from=str(origin.path))
    prepared(tuned.path, dataclasses.replace(config, train=train))
    assert np.concatenate(list(stored_keys(tuned.keys))).tolist() == own.tolist() * 2
    origin.keys.unlink()
    prepared(other.path, dataclasses.replace(config, train=train))
    assert other.keys.read_bytes() == own.tobytes()


def test_a_run_that_an_earlier_version_started_scores_the_same_texts_as_before(
    sorted_text, tmp_path, capsys
):
    """It scored the first ones, so the best score of its checkpoint remains comparable."""
    run, config = RunFolder(tmp_path / "run"), sorted_text("translation")
    start(config, run.path)
    sample = prepared(run.path, config).scored
    assert "scored:" not in capsys.readouterr().out
    stored = json.loads(run.text.read_text())
    run.save_text({name: stored[name] for name in ("training", "validation")})
    assert prepared(run.path, config).scored.inputs == [f"word {number}" for number in range(30)]
    assert "scored: the first 30 of 900 validation examples, as an" in capsys.readouterr().out
    assert prepared(tmp_path / "new", config).scored == sample
