"""A run translates and trains the same under any settings of Keras."""

import json
import os

import keras
import numpy as np
import pytest
from conftest import scored_config, weights_of

from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.machine.keras_settings import for_commands, own_settings
from tf_transformer.run.run import Run
from tf_transformer.training import trainer

TEXTS = ["two hundred", "one"]


@pytest.fixture
def foreign_settings(request):
    """Another type and other constants, which must be there afterwards, too."""
    config, policy = keras.config, request.param
    before = config.floatx(), config.dtype_policy(), config.epsilon()
    config.set_floatx(policy)
    config.set_dtype_policy(policy)
    config.set_epsilon(1e-3)
    yield
    after = config.floatx(), config.dtype_policy().name, config.epsilon()
    config.set_floatx(before[0])
    config.set_dtype_policy(before[1])
    config.set_epsilon(before[2])
    assert after == (policy, policy, 1e-3)


def results(run):
    translator = Translator.from_run(run, beam_size=2)
    return str([translator(TEXTS), translator.score(TEXTS, TEXTS), translator.align(TEXTS, TEXTS)])


@pytest.fixture(scope="module")
def expected(run):
    return results(run)


@pytest.mark.parametrize(
    "foreign_settings",
    ["float16", *(pytest.param(x, marks=pytest.mark.slow) for x in ("bfloat16", "float64"))],
    indirect=True,
)
def test_a_run_translates_the_same(foreign_settings, run, expected):
    assert results(run) == expected


@pytest.mark.parametrize("foreign_settings", ["float16"], indirect=True)
def test_a_run_trains_the_same(foreign_settings, run, tmp_path):
    """Weights and metrics, bit for bit."""
    trainer.train(Run.at(tmp_path, scored_config()))
    for one, other in zip(weights_of(run), weights_of(tmp_path), strict=True):
        np.testing.assert_array_equal(one, other)
    rows = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (run, tmp_path)
    ]
    for one, other in zip(*rows, strict=True):
        assert one | {"tokens_per_second": 0} == other | {"tokens_per_second": 0}


@pytest.mark.parametrize("foreign_settings", ["float16"], indirect=True)
def test_the_last_of_overlapping_blocks_restores_the_settings(foreign_settings):
    first, second = own_settings(), own_settings()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert keras.config.floatx() == "float32"
    second.__exit__(None, None, None)
    assert keras.config.floatx() == "float16"


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_commands_need_tensorflow_and_read_no_configuration_file(backend, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", "/somewhere")
    monkeypatch.setenv("KERAS_BACKEND", backend)
    with pytest.raises(InputError, match=rf"^Keras' backend is {backend}; runs need tensorflow\."):
        for_commands()
    monkeypatch.delenv("KERAS_BACKEND")
    for_commands()
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
    assert not os.path.exists(os.environ["KERAS_HOME"])
