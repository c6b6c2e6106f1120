"""A run: made once from a path, and passed on."""

import dataclasses
import subprocess
import sys

import pytest
from conftest import scored_config, small_config, weights_of, without_trained_length

from tf_transformer import tasks
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.training import trainer

TEXTS = ["one", "", "twenty-one"]


def test_a_run_has_the_options_of_its_folder_and_those_that_replace_them(run):
    config = Run.load(run).config
    assert config == RunFolder(run).load_config()
    assert without_trained_length(config) == scored_config()
    replaced = Run.load(run, {"copy_without_letters": True}, beam_size=7, length_penalty=None)
    expected = dataclasses.replace(
        config,
        task=dataclasses.replace(config.task, copy_without_letters=True),
        decode=dataclasses.replace(config.decode, beam_size=7),
    )
    assert replaced.config == expected
    with pytest.raises(InputError, match="unknown option 'beam' of the search"):
        Run.load(run, beam=7)


def test_the_predictor_of_a_run_is_that_of_its_path(run):
    opened = Run.load(run, beam_size=3, average=1)
    predictor = tasks.load_predictor(opened)
    assert predictor.codec is opened.codec
    assert predictor(TEXTS) == Translator.from_run(run, beam_size=3, average=1)(TEXTS)


def test_a_run_imports_no_tensorflow_before_its_model(run):
    """So that commands report wrong options at once."""
    program = (
        "import sys; from tf_transformer.run.run import Run; run = Run.load(sys.argv[1])\n"
        "run.codec, run.folder.files(), run.identities(), run.origin\n"
        "print('tensorflow' in sys.modules, 'keras' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, run], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_what_a_translation_depends_on_is_its_model_codec_and_weights(run, other_run):
    first = Run.load(run, average=1).identities()
    assert Run.load(run, average=1, beam_size=9).identities() == first
    last = Run.load(run, average=2).identities()
    assert (last["model"], last["tokenizer"]) == (first["model"], first["tokenizer"])
    other = Run.load(other_run, average=1).identities()
    assert (other["model"], other["tokenizer"]) == (first["model"], first["tokenizer"])
    assert other["checkpoint"] != first["checkpoint"]


def test_a_run_knows_the_run_whose_weights_it_starts_with(run, tmp_path):
    config = small_config(init_from=str(run), steps=1, learning_rate=1e-9)
    tuned = Run.at(tmp_path / "tuned", config)
    assert tuned.origin.config == RunFolder(run).load_config()
    assert tuned.origin is tuned.origin
    assert Run.load(run).origin is None
    trainer.train(tuned)
    for one, other in zip(weights_of(run, 5), weights_of(tmp_path / "tuned"), strict=True):
        assert abs(one - other).max() < 1e-6


def test_a_run_cannot_start_with_what_is_no_run(tmp_path):
    RunFolder(tmp_path).save_config(small_config())
    for folder, reason in ((tmp_path / "none", "it has no config.yaml"), (tmp_path, "tokenizer")):
        run = Run.at(tmp_path / "run", small_config(init_from=str(folder)))
        with pytest.raises(InputError, match=f"train.init_from must be a run's folder: .*{reason}"):
            _ = run.origin
