"""Frozen parts of a model keep their weights, and the others train."""

import numpy as np
import pytest
from conftest import small_config

from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.models.names import by_name
from tf_transformer.run.run import Run
from tf_transformer.training import trainer


def weights_of(run, **options):
    """Names of parts and values of all weights."""
    weights = by_name(Translator.from_run(run, **options).model)
    return [(name.partition("/")[0], np.asarray(weight)) for name, weight in weights.items()]


def test_only_other_parts_train_and_a_training_resumes(run, tmp_path):
    options = {"init_from": str(run), "freeze": ("encoder", "*/layer_0/feed_forward"), "seed": 5}
    for steps in (2, 4):  # the second start resumes the first
        config = small_config(steps=steps, **options)
        assert trainer.train(Run.at(tmp_path, config)).updates == steps
    changed = {"encoder": [], "decoder": [], "target_embedding": []}
    pairs = zip(weights_of(run), weights_of(tmp_path, average=1), strict=True)
    for (part, before), (_, after) in pairs:
        changed[part].append(not np.array_equal(before, after))
    assert not any(changed["encoder"])
    assert changed["decoder"].count(False) == 4  # two matrices and their biases
    assert all(changed["target_embedding"])


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (("encoders",), "no weights are named 'encoders'; the parts of this model are encoder, "),
        (("*",), "leaves no weights to train"),
    ],
)
def test_patterns_that_cannot_be_meant_are_errors(tmp_path, patterns, message):
    with pytest.raises(InputError) as error:
        trainer.train(Run.at(tmp_path / "run", small_config(freeze=patterns)))
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_moving_average_needs_all_weights():
    with pytest.raises(InputError, match=r"train\.average_decay averages all weights"):
        TrainConfig(freeze=("encoder",), average_decay=0.9)
