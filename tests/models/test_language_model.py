"""The decoder-only model against NumPy, and as a Keras model."""

import functools

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.config import ModelConfig
from tf_transformer.decoding import StepOptions
from tf_transformer.errors import InputError
from tf_transformer.models.language_model import LanguageModel

VOCABULARY = 23
VARIANTS = {
    "post-norm": {},
    "pre-norm, learned, untied": {
        "norm_first": True,
        "position": "learned",
        "tie_embeddings": "none",
    },
}
each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


@functools.cache
def make_model(dtype="float32", **changes):
    """A small model with random gains and biases, the same in each call."""
    sizes = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2, "max_length": 30}
    model = LanguageModel(VOCABULARY, ModelConfig(**sizes | changes), dtype=dtype)
    model.build()
    return reference.randomize(model, seed=3)


def numpy_logits(model, ids):
    """Logits (T, V) of a row of ids, by the oracle; and the attention of each layer."""
    x = reference.embed(model.embedding, model.position, ids)
    states, attention, _ = reference.stack(model.decoder, x, mask=reference.causal_mask(len(ids)))
    return states @ reference.array(model.output_embedding.embeddings).T, attention


@each_variant
def test_logits_and_attention_equal_numpy_with_padding_at_the_end(variant):
    model, ids = make_model(**variant), np.array([[1, 5, 6, 7, 8], [1, 9, 10, 0, 0]])
    logits, found = model(ids), model.run(ids)
    for row, length in enumerate((5, 3)):
        expected, attention = numpy_logits(model, ids[row, :length])
        actual = reference.array(logits)[row, :length]
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
        for weights, of_layer in zip(found.attention, attention, strict=True):
            actual = reference.array(weights)[row, :, :length, :length]
            np.testing.assert_allclose(actual, of_layer, rtol=0, atol=1e-6)


def test_a_saved_model_computes_the_same_and_fit_goes_on(tmp_path):
    model, ids = (
        make_model(position="learned", tie_embeddings="none"),
        np.array([[1, 5, 6, 7], [1, 9, 10, 11]]),
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(reference.array(loaded(ids)), reference.array(model(ids)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    loaded.compile(keras.optimizers.Adam(0.01), loss, jit_compile=reference.FIT_COMPILES)
    losses = loaded.fit(ids[:, :-1], ids[:, 1:], epochs=5, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize(("tie", "matrices"), [("all", 1), ("target", 1), ("none", 2)])
def test_embeddings_and_output_share_a_matrix_unless_untied(tie, matrices):
    model = make_model(tie_embeddings=tie)
    assert sum(weight.shape == (VOCABULARY, 14) for weight in model.weights) == matrices


def test_there_is_no_cross_attention_and_no_encoder():
    model = make_model()
    assert not any("cross" in weight.path or "encoder" in weight.path for weight in model.weights)
    with pytest.raises(InputError, match=r"coverage_penalty needs a model that attends to a sou"):
        model.step_function(ops.ones((1, 2), "int32"), StepOptions(1, 3, coverage_penalty=0.2))


def test_an_impossible_vocabulary_is_an_error():
    with pytest.raises(ValueError, match="vocabulary_size must be positive, got 0"):
        LanguageModel(0)
