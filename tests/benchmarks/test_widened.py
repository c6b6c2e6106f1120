"""A large model with the weights of a small one is the same function."""

import numpy as np
import pytest

from benchmarks.translations.widened import main, widen
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.models.transformer import Transformer


def model(**options):
    variant = {"position": "rotary", "norm_first": True} | options
    made = Transformer(11, ModelConfig(dropout_rate=0.0, **variant))
    made.build()
    for weight in made.weights:  # biases and norms, too, are not what they start with
        weight.assign(np.random.default_rng(1).normal(0, 0.5, weight.shape))
    return made


def test_a_widened_model_has_the_logits_of_the_small_one():
    small = model(num_layers=1, d_model=8, d_ff=12, num_heads=2)
    large = model(num_layers=3, d_model=32, d_ff=40, num_heads=4)
    inputs = np.int32([[5, 6, 7, 2], [8, 2, 0, 0]]), np.int32([[1, 8, 9], [1, 4, 5]])
    assert np.abs(large(inputs) - small(inputs)).max() > 0.1
    widen(small, large)
    np.testing.assert_allclose(large(inputs), small(inputs), atol=1e-4)


def test_other_variants_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="rotary"):
        main(str(run), str(tmp_path / "wide"))
