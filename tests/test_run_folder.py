"""A run's folder: its configuration, samples and metrics, and imports that work without YAML."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.run_folder import RunFolder

ROOT = pathlib.Path(__file__).parents[1]
CHANGED = Config(
    ModelConfig(d_model=30, num_heads=3, tie_embeddings="none", norm_first=True),
    DataConfig(train_source="Straße.en", train_target="b: #1.de", max_length=99),
    TrainConfig(learning_rate=0.5, seed=7),
    DecodeConfig(length_penalty=0.0, excluded_tokens=("▁foo", "b"), average="best"),
    task="some.module:TASK",
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
        "import keras, tf_transformer\nprint(keras.saving.load_model(sys.argv[1]).count_params())"
    )
    packages = {"jsonargparse", "yaml", "tensorflow_datasets", "sacrebleu", "num2words"}
    output = run_without(packages, program, tmp_path / "model.keras")
    assert int(output) == model.count_params()


def test_a_translator_imports_no_training_code():
    program = (
        "import tf_transformer.tasks.translation, tf_transformer.translator\n"
        "print([name for name in sys.modules if name.startswith('tf_transformer.training')])"
    )
    assert run_without({"tensorflow_datasets"}, program).strip() == "[]"


@pytest.mark.parametrize("module", ["", ".layers", ".kernels.top_k"])
def test_the_model_is_registered_with_keras_in_any_order_of_imports(module):
    program = (
        f"import tf_transformer{module}\nassert {bool(module)} or 'keras' not in sys.modules\n"
        "import keras\nprint('tf_transformer>Transformer' in keras.saving.get_custom_objects())"
    )
    assert run_without(set(), program).strip() == "True"
