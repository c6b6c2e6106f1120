"""The switch between sets of kernels, on a whole model: its loss with gradients, and searches."""

import os
import subprocess
import sys

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer import kernels
from tf_transformer.config import ModelConfig
from tf_transformer.losses.cross_entropy import token_losses
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.sequences import shift_right

SOURCE = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]], "int32")
LABELS = np.array([[4, 5, 6, 2], [7, 2, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model():
    sizes = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2}
    model = Transformer(23, ModelConfig(**sizes))
    model.build()
    return reference.randomize(model, seed=3)


def loss(model, embeddings):
    states = model.run((SOURCE, shift_right(ops.convert_to_tensor(LABELS)))).states
    return token_losses(LABELS, states, embeddings, 0.1).loss


def test_the_loss_of_a_model_and_its_gradient_are_those_of_the_plain_kernels(model):
    embeddings = reference.array(model.output_embedding.embeddings).astype("float32")
    found = {}
    for name in ("plain", "tuned"):
        with kernels.use(kernels.SETS[name]):
            value = reference.array(loss(model, embeddings))
            (gradient,) = reference.gradients(lambda x: loss(model, x), embeddings)
        found[name] = value, gradient
    for one, other in zip(found["plain"], found["tuned"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("field", ["attention", "layer_norm", "cross_entropy", "dropout"])
def test_a_model_in_training_takes_each_kernel_from_the_current_set(field):
    def forbidden(*arguments, **options):
        raise NotImplementedError(field)

    model = Transformer(23, ModelConfig(num_layers=1, d_model=14, d_ff=17, num_heads=2))
    model.build()

    def train():
        inputs = (SOURCE, shift_right(ops.convert_to_tensor(LABELS)))
        states = model.run(inputs, training=True).states
        token_losses(LABELS, states, model.output_embedding.embeddings)

    broken = kernels.PLAIN._replace(**{field: forbidden})
    with kernels.use(broken), pytest.raises(NotImplementedError, match=field):
        train()


@pytest.mark.slow
def test_the_environment_selects_the_set():
    code = "from tf_transformer import kernels; print(kernels.current() is kernels.PLAIN)"
    for name, expected in {
        "plain": "True",
        "tuned": "False",
        "fast": "must be plain, tuned",
    }.items():
        environment = os.environ | {"TF_TRANSFORMER_KERNELS": name}
        process = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=False
        )
        assert expected in (process.stdout + process.stderr).decode()


def test_a_set_is_restored_after_an_error():
    before = kernels.current()
    with pytest.raises(KeyError), kernels.use(kernels.PLAIN):
        raise KeyError
    assert kernels.current() is before


def test_logits_are_those_of_the_plain_kernels(model):
    with kernels.use(kernels.PLAIN):
        plain = reference.array(model((SOURCE, LABELS)))
    np.testing.assert_allclose(reference.array(model((SOURCE, LABELS))), plain, atol=1e-5)
