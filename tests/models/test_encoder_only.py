"""Models of the encoder alone: against NumPy, their independences, saved and loaded."""

import math

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.config import ModelConfig
from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel, TextEncoder

VOCABULARY = 23
# The end of the second row is padding.
IDS = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
SIZES = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2, "max_length": 13}
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned": {"position": "learned", "attention_bias": True},
}

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def make(model_class, *arguments, **changes):
    """A small model with random weights."""
    keras.utils.set_random_seed(1)
    model = model_class(VOCABULARY, *arguments, config=ModelConfig(**SIZES | changes))
    model.build()
    return reference.randomize(model)


def of(model, ids):
    return reference.array(model(ids))


def states(encoder, ids):
    """The encoder's states (S, D) of one row without padding, in NumPy."""
    return reference.stack(
        encoder.stack, reference.embed(encoder.embedding, encoder.position, ids)
    )[0]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@each_variant
def test_logits_of_masked_ids_equal_numpy(variant):
    model = make(MaskedLanguageModel, **variant)
    for ids, logits in zip(IDS, of(model, IDS), strict=True):
        ids = ids[ids != 0]
        hidden = gelu(reference.linear(model.hidden, states(model.encoder, ids)))
        embeddings = reference.array(model.encoder.embedding.embeddings)
        expected = reference.layer_norm(model.norm, hidden) @ embeddings.T
        np.testing.assert_allclose(logits[: len(ids)], expected, rtol=0, atol=2e-5)


@each_variant
def test_logits_of_labels_equal_numpy(variant):
    """A mean over the tokens of each row; padding and the other row change nothing."""
    model = make(Classifier, ["a", "b", "c"], **variant)
    for ids, logits in zip(IDS, of(model, IDS), strict=True):
        mean = states(model.encoder, ids[ids != 0]).mean(axis=0)
        np.testing.assert_allclose(logits, reference.linear(model.head, mean), rtol=0, atol=2e-5)


def test_a_row_of_padding_has_finite_logits():
    """Replicas without a row get one (`training/strategy.py`)."""
    assert np.isfinite(of(make(Classifier, ["a", "b"]), IDS * 0)).all()


def test_attention_of_all_layers_is_returned():
    encoder = make(TextEncoder)
    found = encoder.run(IDS).attention
    assert [tuple(weights.shape) for weights in found] == [(2, 2, 5, 5)] * 2
    np.testing.assert_allclose(reference.array(found[1])[1, :, :, 3:], 0.0)


@pytest.mark.parametrize("model_class", [MaskedLanguageModel, Classifier])
def test_a_saved_model_computes_the_same(model_class, tmp_path):
    options = {"labels": ["x", "y"], "separator": ";", "texts": 2}
    model = make(
        lambda *sizes, config: model_class(
            *sizes, config=config, **options if model_class is Classifier else {}
        ),
        **{"position": "t5", "activation": "swiglu", "normalization": "rms_norm"},
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(of(loaded, IDS), of(model, IDS))


def test_checkpoints_hold_the_random_state_of_masks():
    """A run that goes on draws the masks of an uninterrupted one: see `training/checkpoint.py`."""
    model = make(MaskedLanguageModel, dropout_rate=0.0)
    assert any(variable is model.masking.seed_generator.state for variable in model.variables)
    words = np.where(IDS > 2, np.arange(5) % 5 + 1 - (np.arange(5) == 4), 0)
    before = [ops.convert_to_numpy(variable) for variable in model.variables]
    first = [ops.convert_to_numpy(model.masking(IDS, words, training=True)[1]) for _ in range(20)]
    for variable, value in zip(model.variables, before, strict=True):
        variable.assign(value)
    again = [ops.convert_to_numpy(model.masking(IDS, words, training=True)[1]) for _ in range(20)]
    np.testing.assert_array_equal(first, again)
    assert len({labels.tobytes() for labels in first}) > 5
