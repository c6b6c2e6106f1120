"""Adapters train in place of the weights of another run, which stay as they are."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config, weights_of
from training.processes import assert_same_state

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.export import to_run
from tf_transformer.models.names import by_name
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks import load_predictor
from tf_transformer.training import trainer

RANK = 3


def config_of(origin, **options):
    return small_config(init_from=str(origin), lora=RANK, deterministic=True, **options)


@pytest.fixture(scope="module")
def adapted(run, tmp_path_factory):
    """A run with adapters of two validation intervals."""
    folder = tmp_path_factory.mktemp("adapted") / "run"
    trainer.train(Run.at(folder, config_of(run, learning_rate=5.0)))
    return folder


@pytest.fixture
def moved(adapted, run, tmp_path):
    """A copy of the run with adapters, whose other run is a copy, too: both folders."""
    origin, tuned = tmp_path / "origin", tmp_path / "tuned"
    shutil.copytree(run, origin)
    shutil.copytree(adapted, tuned)
    config = RunFolder(tuned).load_config()
    RunFolder(tuned).save_config(config.with_options({"train.init_from": str(origin)}))
    return origin, tuned


def adapters_in(checkpoint):
    reader = tf.train.load_checkpoint(str(checkpoint))
    keys = [key for key in reader.get_variable_to_shape_map() if key.startswith("weights/")]
    names = [key.removeprefix("weights/").partition("/.ATTRIBUTES")[0] for key in keys]
    return {name: reader.get_tensor(key) for name, key in zip(names, keys, strict=True)}


def test_a_checkpoint_holds_the_adapters_only(adapted, run):
    adapters = adapters_in(adapted / "checkpoints" / "step-4")
    weights = by_name(Run.load(run).model(load_task_model))
    kernels = {name for name in weights if name.endswith("/kernel")}
    assert len(kernels) == 4 + 7  # of an encoder layer and a decoder layer
    stems = {name.removesuffix("/kernel") for name in kernels}
    assert adapters.keys() == {f"{stem}/lora_kernel_{x}" for stem in stems for x in "ab"}
    for stem in stems:
        rows, columns = weights[f"{stem}/kernel"].shape
        assert adapters[f"{stem}/lora_kernel_a"].shape == (rows, RANK)
        assert adapters[f"{stem}/lora_kernel_b"].shape == (RANK, columns)


def load_task_model(config, codec, dtype):
    from tf_transformer.tasks.translation import TRANSLATION

    return TRANSLATION.build_model(config, codec, dtype)


def test_the_model_is_the_other_run_s_with_the_mean_of_the_products(adapted, run):
    """Oracle: NumPy on the numbers in the files."""
    origin = by_name(load_predictor(Run.load(run)).model)
    tuned = by_name(load_predictor(Run.load(adapted, average=2)).model)
    both = [adapters_in(adapted / "checkpoints" / f"step-{step}") for step in (2, 4)]
    for name, weight in tuned.items():
        expected = np.asarray(origin[name], np.float64)
        if name.endswith("/kernel"):
            a, b = (name.replace("/kernel", f"/lora_kernel_{x}") for x in "ab")
            change = np.mean([adapters[a] @ adapters[b] for adapters in both], axis=0)
            assert np.abs(change).max() > 1e-5
            expected = expected + change
        np.testing.assert_allclose(weight, expected, atol=1e-6, err_msg=name)


def test_one_model_is_built_and_one_line_tells_of_missing_checkpoints(adapted, capsys):
    built = []

    def build(*arguments):
        built.append(load_task_model(*arguments))
        return built[-1]

    Run.load(adapted, average=100).model(build)
    lines = [line for line in capsys.readouterr().err.splitlines() if "checkpoint(s)" in line]
    assert lines == [f"average 100: averages 2 checkpoint(s), because {adapted} has no more"]
    assert len(built) == 1


def test_adapters_have_no_moving_average(adapted):
    with pytest.raises(InputError, match="holds no moving average of weights"):
        Run.load(adapted, average="ema").model(load_task_model)


@pytest.mark.slow
def test_a_resumed_run_equals_one_without_an_interruption(adapted, run, tmp_path):
    for steps in (2, 4):
        trainer.train(Run.at(tmp_path / "run", config_of(run, learning_rate=5.0, steps=steps)))
    assert_same_state(adapted, tmp_path / "run")


def test_a_small_folder_needs_no_other_run(adapted, tmp_path):
    to_run.write(Run.load(adapted), tmp_path / "small", "float32")
    config = RunFolder(tmp_path / "small").load_config()
    assert config.train.lora == 0
    for one, other in zip(weights_of(tmp_path / "small"), weights_of(adapted, 5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_adapters_of_other_weights_are_an_error(moved):
    origin, tuned = moved
    load_predictor(Run.load(tuned))
    trainer.train(Run.at(origin, small_config(steps=6, valid_score_examples=4)))
    for use in (
        lambda: load_predictor(Run.load(tuned)),
        lambda: trainer.train(Run.at(tuned, config_of(origin, learning_rate=5.0, steps=6))),
    ):
        with pytest.raises(InputError, match=r"were trained with other weights than those in the"):
            use()
    shutil.rmtree(origin)
    with pytest.raises(InputError, match=r"train\.init_from must be a run's folder"):
        load_predictor(Run.load(tuned))


def test_the_other_run_may_move(moved):
    origin, tuned = moved
    before = weights_of(tuned)
    elsewhere = origin.rename(origin.with_name("elsewhere"))
    with pytest.raises(InputError, match=r"If it has moved, .* --train\.init_from FOLDER$"):
        Run.load(tuned).model(load_task_model)
    trainer.train(Run.at(tuned, config_of(elsewhere, learning_rate=5.0)))
    for one, other in zip(before, weights_of(tuned), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora": 4}, "Name that run: train.init_from"),
        ({"lora": -1, "init_from": "run"}, "train.lora"),
        ({"lora": 4, "init_from": "run", "average_decay": 0.9}, "or train.lora trains only some"),
    ],
)
def test_options_that_cannot_be_meant_are_errors(options, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**options)
