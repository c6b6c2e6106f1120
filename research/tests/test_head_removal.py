"""Models without some of their heads."""

import numpy as np
import pytest
import reference

from research.head_removal import all_heads, attentions, without
from tf_transformer.config import ModelConfig
from tf_transformer.models.transformer import Transformer

INPUTS = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])


@pytest.fixture(scope="module")
def model():
    sizes = {"num_layers": 2, "d_model": 8, "d_ff": 9, "num_heads": 2, "key_dim": 3, "value_dim": 5}
    model = Transformer(11, ModelConfig(**sizes))
    model.build()
    reference.randomize(model, seed=3)
    return model


@pytest.mark.parametrize("place", [("encoder", 1), ("decoder", 0), ("cross", 1)])
def test_the_output_of_attention_is_the_sum_of_the_outputs_of_its_heads(model, place):
    attention = attentions(model)[place]
    x = np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32")
    inputs = (x, x[:, :2]) if place[0] == "cross" else (x,)
    mine = [head for head in all_heads(model) if head[:2] == place]
    outputs = []
    for head in mine:
        with without(model, set(mine) - {head}):
            outputs.append(np.asarray(attention(*inputs).output))
    assert len(outputs) == 2
    assert np.abs(outputs).max(axis=(1, 2, 3)).min() > 0.1
    np.testing.assert_allclose(sum(outputs), np.asarray(attention(*inputs).output), atol=1e-5)


def test_each_head_counts_and_all_return(model):
    whole = np.asarray(model(INPUTS))
    for head in all_heads(model):
        with without(model, [head]):
            assert np.abs(np.asarray(model(INPUTS)) - whole).max() > 1e-3, head
    np.testing.assert_array_equal(np.asarray(model(INPUTS)), whole)
