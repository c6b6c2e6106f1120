"""Checkpoints of versions before 0.3, whose weights have numbers in place of names."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config, weights_of
from training.processes import assert_same_state

from tf_transformer.config import ModelConfig
from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.names import by_name
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.earlier import earlier_order
from tf_transformer.run.run import Run
from tf_transformer.training import trainer

NAMES = pathlib.Path(__file__).parents[1] / "fixtures" / "earlier_weights.json"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
SIZES = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}


def _built(model, **options):
    config = ModelConfig(**SIZES | options.pop("config", {}))
    built = model(7, config=config, **options)
    built.build()
    return built


MODELS = {
    "transformer": lambda: _built(Transformer),
    "later": lambda: _built(
        Transformer,
        config={
            **{"normalization": "rms_norm", "norm_first": True, "activation": "swiglu"},
            **{"position": "t5", "tie_embeddings": "none"},
        },
    ),
    "imported": lambda: _built(
        Transformer,
        config={"attention_bias": True, "output_bias": True, "position": "learned"},
    ),
    "linear": lambda: _built(
        Transformer,
        config={"attention": "linear", "position": "learned", "tie_embeddings": "target"},
    ),
    "deep": lambda: _built(LanguageModel, config={"num_layers": 11, "position": "relative"}),
    "classifier": lambda: _built(Classifier, labels=("a", "b"), config={"position": "learned"}),
    "masked": lambda: _built(MaskedLanguageModel),
    "bahdanau": lambda: _built(RecurrentModel, config={"architecture": "bahdanau"}),
    "luong": lambda: _built(RecurrentModel, config={"architecture": "luong", "num_layers": 2}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_numbers_is_that_of_earlier_versions(name):
    """The file has the names in the order of the weights of version 0.2."""
    model = MODELS[name]()
    expected = json.loads(NAMES.read_text("utf-8"))[name]
    shuffled = sorted(by_name(model))
    assert earlier_order(shuffled, model.config.position == "learned") == expected


@pytest.mark.slow
def test_a_run_of_an_earlier_version_loads_and_resumes(tmp_path):
    """Oracle: the same run with names."""
    options = {"average_decay": 0.9, "deterministic": True}
    named, numbered = tmp_path / "named", tmp_path / "numbered"
    trainer.train(Run.at(named, small_config(steps=4, **options)))
    shutil.copytree(named, numbered)
    for index in numbered.rglob("step-*.index"):
        number_weights(str(index.with_suffix("")))
    for average in (1, 5, "best", "ema"):
        both = zip(weights_of(named, average), weights_of(numbered, average), strict=True)
        assert all(np.array_equal(one, other) for one, other in both)
    for folder in (named, numbered):
        trainer.train(Run.at(folder, small_config(steps=6, **options)))
    assert_same_state(named, numbered)


def number_weights(path):
    """Writes a checkpoint again as version 0.2 did."""
    reader = tf.train.load_checkpoint(path)
    values = {
        key.removesuffix(VALUE): tf.Variable(reader.get_tensor(key))
        for key in reader.get_variable_to_shape_map()
        if key.endswith(VALUE)
    }
    order = json.loads(NAMES.read_text("utf-8"))["transformer"]

    def numbered(*groups):
        return [values[f"{group}/{name}"] for name in order for group in groups]

    parts = {"weights": numbered("weights")}
    if "averages/target_embedding/embeddings" in values:
        pairs = numbered("optimizer/moments", "optimizer/squares")
        names = ("skipped", "skipped_in_a_row", "finite_in_a_row", "loss_scale")
        counts = [values[f"optimizer/counts/{name}"] for name in names]
        parts["optimizer"] = [values["optimizer/counts/iteration"], *pairs, *counts]
        parts["averages"] = numbered("averages")
        noise = sorted(key for key in values if key.startswith("random_state/"))
        noise.sort(key=lambda key: int(key.rpartition("/")[2]))
        parts["random_state"] = [values[key] for key in noise]
        for group in ("standing", "choice"):
            parts[group] = {
                key.partition("/")[2]: value
                for key, value in values.items()
                if key.startswith(f"{group}/")
            }
    checkpoint = tf.train.Checkpoint(**parts)
    checkpoint.save_counter.assign_add(1)
    checkpoint.write(path)
