"""Configurations that earlier versions wrote: they load with the same meaning."""

import pathlib
import shutil
from dataclasses import asdict

import pytest
import yaml

from tf_transformer.commands import train
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Config
from tf_transformer.config.task import (
    ClassificationOptions,
    LanguageModelingOptions,
    MaskedLanguageModelingOptions,
    ParsingOptions,
    TranslationOptions,
)
from tf_transformer.errors import InputError
from tf_transformer.run.earlier_options import MOVED
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
    "language_modeling": LanguageModelingOptions(),
    "masked_language_modeling": MaskedLanguageModelingOptions(),
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
        of_tasks = MOVED.get(group, ())
        expected = {option: x for option, x in stored[group].items() if option not in of_tasks}
        assert expected.items() <= present[group].items()
    options = read_options(train.main, ["--run_dir", "x", "--config", str(run.config)])
    del options["run_dir"], options["given"]
    assert Config(**options) == config
    run.save_config(config)
    assert run.load_config() == config


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
