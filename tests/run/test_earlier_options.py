"""Configurations that earlier versions wrote: they load with the same meaning."""

import json
import pathlib
import shutil
from dataclasses import asdict, fields, replace

import pytest
import yaml

from tf_transformer.commands import train
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Config, Corpus, ImportedConfig, ModelConfig
from tf_transformer.config.data import ShortForms
from tf_transformer.config.task import (
    ClassificationOptions,
    ParsingOptions,
    TaskOptions,
    TranslationOptions,
)
from tf_transformer.errors import InputError
from tf_transformer.run.earlier import CONSTANTS, MOVED
from tf_transformer.run.folder import RunFolder

ROOT = pathlib.Path(__file__).parents[2]
STORED = ROOT / "tests" / "fixtures" / "earlier_configs"
TASKS = {
    "translation": TranslationOptions(bleu_tokenize="zh", copy_without_letters=True),
    "parsing": ParsingOptions(linearization="brackets", grammar=False),
    "classification": ClassificationOptions(
        text_columns=("premise", "hypothesis"),
        label_column="kind",
        label_separator=",",
        labels=("no", "yes"),
    ),
    "language_modeling": TaskOptions("language_modeling"),
    "masked_language_modeling": TaskOptions("masked_language_modeling"),
}

SHORT_FORMS = [each.name for each in fields(ShortForms)]
CORPORA = {
    "translation": (Corpus(name="wmt14_translate/de-en", format="tfds"),),
    "parsing": (Corpus(path="trees.mrg", format="text"),),
    "classification": (Corpus(path="rows.tsv", format="text"),),
    "language_modeling": (Corpus(path="text.en", format="text"),),
    "masked_language_modeling": (Corpus(path="text.en", format="text"),),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_configuration_of_an_earlier_version_has_the_same_meaning(name, tmp_path):
    """By both readers; every option that is still in its group has its value."""
    run = RunFolder(tmp_path)
    shutil.copyfile(STORED / f"{name}.yaml", run.config)
    config = run.load_config()
    assert config.task == TASKS[name]
    stored = yaml.safe_load(run.config.read_text("utf-8"))
    present = yaml.safe_load(yaml.safe_dump(asdict(config)))
    for group in ("model", "data", "train", "decode"):
        gone = {*MOVED.get(group, ()), *CONSTANTS.get(group, ()), *SHORT_FORMS}
        expected = {option: x for option, x in stored[group].items() if option not in gone}
        expected.pop("corpora", None)
        assert expected.items() <= (present[group] | present["model"]["imported"]).items()
    assert (config.data.corpora, config.data.valid_corpora) == (CORPORA[name], ())
    options = read_options(train.main, ["--run_dir", "x", "--config", str(run.config)])
    del options["run_dir"], options["given"]
    assert Config(**options) == config
    run.save_config(config)
    assert run.load_config() == config


def test_a_constant_with_another_value_is_an_error_in_training_only(tmp_path):
    """Predictions do not depend on it, so an earlier run still loads."""
    run = RunFolder(tmp_path)
    run.save_config(Config())
    text = run.config.read_text("utf-8").replace("  steps: 0\n", "  steps: 0\n  cut_rate: 0.2\n")
    run.config.write_text(text, "utf-8")
    assert run.load_config() == Config()
    with pytest.raises(SystemExit):
        read_options(train.main, ["--run_dir", "x", "--config", str(run.config)])


TRAITS = {
    **{"encoder_d_model": 64, "encoder_d_ff": 96, "encoder_num_heads": 2, "value_dim": 8},
    **{"norm_epsilon": 0.001, "attention_bias": True, "output_bias": True, "zero_start": True},
    "source_end": False,
}


@pytest.mark.parametrize("trait", TRAITS)
def test_traits_of_imported_models_may_be_options_of_the_model_as_in_earlier_versions(
    trait, tmp_path
):
    """On the command line, in a file, in the folder of a run and in Python."""
    others = {"tie_embeddings": "target", "output_bias": trait == "zero_start"}
    model = others | {trait: TRAITS[trait]}
    expected = ModelConfig(
        tie_embeddings="target",
        imported=ImportedConfig(**{name: model[name] for name in ("output_bias", trait)}),
    )
    assert expected == ModelConfig(**model) == ModelConfig.of(model)
    assert expected == replace(ModelConfig(**others), **{trait: TRAITS[trait]})
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"model": model, "task": "translation"}), "utf-8")
    assert expected == RunFolder(tmp_path).load_config().model
    words = [f"--model.{name}={str(value).lower()}" for name, value in model.items()]
    for given in (["--config", str(file)], words, [f"--model={json.dumps(model)}"]):
        options = read_options(train.main, ["--run_dir", "x", *given])
        assert expected == options["model"], given
        assert f"model.imported.{trait}" in options["given"]


def test_an_option_on_the_command_line_overrides_a_trait_in_a_file_in_either_place(tmp_path):
    file = tmp_path / "x.yaml"
    for group in ("{value_dim: 8}", "{imported: {value_dim: 8}}"):
        file.write_text(f"model: {group}", "utf-8")
        for option in ("model.value_dim", "model.imported.value_dim"):
            words = ["--run_dir", "x", f"--{option}", "9", "--config", str(file)]
            assert read_options(train.main, words)["model"].imported.value_dim == 9


@pytest.mark.parametrize(
    ("words", "corpus"),
    [
        (["--data.train_source=a", "--data.train_target=b"], Corpus("a", "b")),
        (["--data.train_file", "a"], Corpus(path="a", format="text")),
        (["--data.tfds", "x/de-en"], Corpus(name="x/de-en", format="tfds")),
        (["--data.held_out", "3"], Corpus(path="stored.tmx")),
    ],
)
def test_a_short_form_on_the_command_line_overrides_the_corpora_of_a_file(tmp_path, words, corpus):
    file = tmp_path / "x.yaml"
    file.write_text("data: {corpora: [{path: stored.tmx}], valid_corpora: [{path: valid.tmx}]}")
    data = read_options(train.main, ["--run_dir", "x", "--config", str(file), *words])["data"]
    assert (data.corpora, data.valid_corpora) == ((corpus,), (Corpus(path="valid.tmx"),))


def test_the_pretrained_run_loads_with_its_options():
    task = RunFolder(ROOT / "pretrained" / "tatoeba-en-de").load_config().task
    assert task == TranslationOptions(copy_without_letters=True, lower_capitals=True)


@pytest.mark.parametrize("name", ["parsing", "language_modeling"])
def test_a_file_that_was_cut_short_is_an_error(name, tmp_path):
    """At any line, of an earlier file and of a present one."""
    run = RunFolder(tmp_path)
    run.save_config(Config(task=TASKS[name]))
    for text in (run.config.read_text("utf-8"), (STORED / f"{name}.yaml").read_text("utf-8")):
        lines = text.splitlines(keepends=True)
        for end in {*range(0, len(lines), 9), *range(len(lines) - 5, len(lines))}:
            run.config.write_text("".join(lines[:end]), "utf-8")
            with pytest.raises(InputError, match=r"cut short|got None|Parser key|group"):
                run.load_config()
