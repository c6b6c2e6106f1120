"""A run's folder: its configuration, samples and metrics, and imports that work without YAML."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import types
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.commands import train
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import (
    AugmentConfig,
    Config,
    Corpus,
    DataConfig,
    DecodeConfig,
    ImportedConfig,
    ModelConfig,
    TrainConfig,
)
from tf_transformer.config.task import ParsingOptions
from tf_transformer.config.train import Stage
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath, PathOrAddress
from tf_transformer.registry import OPTIONS
from tf_transformer.run.folder import RunFolder

ROOT = pathlib.Path(__file__).parents[2]
CHANGED = Config(
    ModelConfig(d_model=30, num_heads=3, tie_embeddings="none", norm_first=True),
    DataConfig(train_source="Straße.en", train_target="b: #1.de", max_length=99),
    TrainConfig(learning_rate=0.5, seed=7),
    DecodeConfig(length_penalty=0.0, excluded_tokens=("▁foo", "b"), average="best"),
    task=ParsingOptions(linearization="brackets", grammar=False),
)


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path)


# --- configuration ---------------------------------------------------------------------------


@pytest.mark.parametrize("config", [Config(), CHANGED], ids=["defaults", "changed"])
def test_a_saved_configuration_loads_as_it_was(config, run):
    run.save_config(config)
    assert run.load_config() == config
    assert [path.name for path in run.path.iterdir()] == ["config.yaml"]


HOSTILE = [
    *("1e3", "2E5", "-1e3", "1.e3", "no", "on", "null", "~", "0x10", "0o7", "1_000", "12:30", "+1"),
    *(
        "2024-01-01",
        "=",
        "<<",
        "!tag",
        "{}",
        "{a: b}",
        "[a]",
        " x ",
        "a\nb",
        "'",
        '"',
        "\U0001f600",
    ),
    *("", "\x85", "a\u2028b", "\t", "\x00", "\ufeff", "x y " * 900, "1e-9", ".inf", "nan", "- a"),
    *("#x", "a: b", "a:", "%", "@", "`", "&a", "*a", "|", ">", "?", ",", "---", "..."),
]


def values_of(hint):
    """Any values of a type of options."""
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*map(values_of, get_args(hint)))
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if hint is AugmentConfig:
        rates = st.floats(0, 1)
        return st.builds(AugmentConfig, join=rates, upper=rates, copy=rates)
    if hint is ImportedConfig:
        return st.builds(
            ImportedConfig, **{name: values_of(kind) for name, kind in get_type_hints(hint).items()}
        )
    if hint is Corpus:
        text, columns = values_of(str), values_of(tuple[str, ...])
        path = values_of(LocalPath).filter(bool)
        return st.builds(Corpus, path=path, format=text, columns=columns, split=text)
    if hint is Stage:
        counts = st.integers(0, 9)
        names = values_of(tuple[str, ...])
        return st.builds(Stage, corpora=names, updates=counts, patience=counts)
    if hint in (LocalPath, PathOrAddress):  # a command reads ~ as the home folder
        return values_of(str).filter(lambda path: "~" not in path and ":/" not in path)
    numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1)
    kinds = {bool: st.booleans(), int: st.integers() | st.integers(0, 9), float: numbers}
    return (kinds | {str: st.sampled_from(HOSTILE) | st.text()})[hint]


@settings(max_examples=25)
@given(st.data())
def test_every_option_with_any_value_loads_as_it_was_saved(tmp_path_factory, data):
    """By both readers: that of all commands, and that of a training run that goes on."""
    run = RunFolder(tmp_path_factory.mktemp("run"))
    config = Config(task=data.draw(st.sampled_from(sorted(OPTIONS))))
    for part in ("model", "data", "train", "decode", "task"):
        group = getattr(config, part)
        hints = get_type_hints(type(group), include_extras=True)
        hints = {x.name: hints[x.name] for x in dataclasses.fields(group) if x.name != "name"}
        names = st.lists(st.sampled_from(sorted(hints)), unique=True) if hints else st.just([])
        for name in data.draw(names):
            with contextlib.suppress(InputError):  # out of range, or not with other options
                changed = {name: data.draw(values_of(hints[name]))}
                changed = dataclasses.replace(getattr(config, part), **changed)
                config = dataclasses.replace(config, **{part: changed})
    run.save_config(config)
    assert repr(run.load_config()) == repr(config)  # unlike ==, tells -0.0 from 0.0
    words = ["--run_dir", str(run.path), "--config", str(run.config)]
    options = read_options(train.main, words)
    del options["run_dir"], options["given"]
    assert repr(Config(**options)) == repr(config)


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\x00" not in text])
def test_text_on_the_command_line_is_text(text):
    labels = yaml.safe_dump([text, "a"], default_flow_style=True)
    words = ["--run_dir", "x", f"--data.origin={text}", f"--task.labels={labels}"]
    options = read_options(train.main, [*words, "--task", "classification"])
    assert options["data"].origin == text
    assert options["task"].labels == (text, "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": math.inf}, "train.learning_rate must be a number, got inf."),
        ({"clip_norm": math.nan}, "train.clip_norm must be a number, got nan."),
        ({"init_from": "\ud800"}, "train.init_from must be text, got"),
        ({"metric": None}, "train.metric must be text, got None."),
    ],
)
def test_a_value_that_no_file_can_hold_is_an_error(options, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**options)


def test_a_saved_configuration_is_complete(run):
    run.save_config(CHANGED)
    written = yaml.safe_load((run.path / "config.yaml").read_text("utf-8"))
    assert written == json.loads(json.dumps(dataclasses.asdict(CHANGED)))  # YAML has no tuples


def test_a_folder_without_a_configuration_is_an_error(run):
    with pytest.raises(InputError) as error:
        run.load_config()
    assert str(error.value) == (
        f"{run.path} is not a run's folder: it has no config.yaml. Check the path, or train "
        f"first: python train.py --run_dir {run.path}"
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("model: {d_modle: 64}", "d_modle"),
        ("modle: {d_model: 64}", "modle"),
        ("model: {d_model: large}", "d_model"),
        ("model: {position: absolute}", "position"),
        ("model: {d_model: 0}", "model.d_model must be positive, got 0."),
        ("model: {d_model: 10, num_heads: 3}", "model.d_model (10) must be a multiple"),
        ("data: {max_length: 2000}\nmodel: {position: learned}", "data.max_length (2000)"),
        ("model: {d_model: [1", "expected"),  # from YAML's own message
        ("data: {source_language: no}", "Write it in quotes"),
        ("data: 3", "data must be a group of options, got 3."),
        ("- a", "expected options like 'train: {steps: 100}', got ['a']."),
        ("", "expected options like 'train: {steps: 100}', got None."),
    ],
)
def test_a_bad_key_or_value_in_a_file_is_an_error(text, named, run):
    run.config.write_text(text, "utf-8")
    with pytest.raises(InputError) as error:
        run.load_config()
    assert named in str(error.value)


# --- samples and metrics ---------------------------------------------------------------------


def test_samples_have_a_line_each(run):
    run.save_samples(["one\u2028two", "", "three\nfour"])
    assert run.load_samples() == ["one\u2028two", "", "three four"]


def test_metrics_after_an_update_and_broken_lines_do_not_count(run):
    assert run.load_metrics(9) == []
    run.metrics.write_text('{"step": 2}\n{"step": 4, "loss": 0.1}\n{"step": 6}\n{"st')
    assert run.load_metrics(5) == [{"step": 2}, {"step": 4, "loss": 0.1}]


# --- imports ---------------------------------------------------------------------------------

WITHOUT_MODULES = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
{program}
"""


def run_without(blocked: set[str], program: str, *arguments) -> str:
    """The output of a program in a fresh process that cannot import some modules."""
    process = subprocess.run(
        [
            *(sys.executable, "-c", WITHOUT_MODULES.format(blocked=blocked, program=program)),
            *map(str, arguments),
        ],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_model_can_be_loaded_without_the_packages_of_training(tmp_path):
    from tf_transformer import Transformer

    model = Transformer(11, ModelConfig(num_layers=1, d_model=8, d_ff=8, num_heads=2))
    model.build()
    model.save(tmp_path / "model.keras")
    program = (
        "import keras, tf_transformer.models\n"
        "print(keras.saving.load_model(sys.argv[1]).count_params())"
    )
    packages = {"jsonargparse", "yaml", "tensorflow_datasets", "sacrebleu", "num2words"}
    output = run_without(packages, program, tmp_path / "model.keras")
    assert int(output) == model.count_params()


UNUSED = {"tensorflow_datasets", "sacrebleu", "num2words", "babel", "nltk", "starlette"}


def test_a_translator_imports_no_training_code():
    program = (
        "import tf_transformer.tasks.translation, tf_transformer.inference.translator\n"
        "tf_transformer.tasks.for_run(tf_transformer.Config())\n"
        "print([name for name in sys.modules if name.startswith('tf_transformer.training')])"
    )
    assert run_without(UNUSED, program).strip() == "[]"


def test_an_import_of_the_models_registers_them_and_an_import_of_the_package_is_fast():
    program = (
        "import tf_transformer\nassert 'keras' not in sys.modules\n"
        "import tf_transformer.models, keras\n"
        "print('tf_transformer>Transformer' in keras.saving.get_custom_objects())"
    )
    assert run_without(set(), program).strip() == "True"
