"""One table of names per format, which imports and exports read in opposite directions."""

import pathlib

import numpy as np
import pytest

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import layouts
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer

SIZES = {"num_layers": 2, "d_model": 8, "d_ff": 16, "num_heads": 2, "attention_bias": True}
POST_NORM = ModelConfig(**SIZES)
PRE_NORM = ModelConfig(**SIZES, norm_first=True)
GATED = ModelConfig(**SIZES, norm_first=True, activation="swiglu", normalization="rms_norm")
SSRU = ModelConfig(**SIZES, decoder_attention="ssru")
MARIAN = layouts.marian(norm_first=False, has_ssru=False)
TABLES = {
    "Transformers": (layouts.TRANSFORMERS, PRE_NORM),
    "fairseq": (layouts.FAIRSEQ, PRE_NORM),
    "Marian": (MARIAN, POST_NORM),
    "Marian, pre-norm": (layouts.marian(norm_first=True, has_ssru=False), PRE_NORM),
    "Marian, SSRU": (layouts.marian(norm_first=False, has_ssru=True), SSRU),
    "Marian, pre-norm, SSRU": (
        layouts.marian(norm_first=True, has_ssru=True),
        ModelConfig(**SIZES, norm_first=True, decoder_attention="ssru"),
    ),
    "CTranslate2": (layouts.ctranslate2(is_gated=False), PRE_NORM),
    "CTranslate2, gated": (layouts.ctranslate2(is_gated=True), GATED),
    "OpenNMT-tf, post-norm": (layouts.opennmt_tf(norm_first=False), POST_NORM),
    "OpenNMT-tf, pre-norm": (layouts.opennmt_tf(norm_first=True), PRE_NORM),
}
PATH = pathlib.Path("model.bin")


def built(config):
    model = Transformer(7, config)
    model.build()
    return model


@pytest.mark.parametrize("name", TABLES)
def test_each_weight_of_a_layer_has_names_of_its_own(name):
    layout, config = TABLES[name]
    named = {weight: layout.names(weight) for weight in by_name(built(config))}
    assert [weight for weight, names in named.items() if not names] == [
        "target_embedding/embeddings"
    ]
    names = [name for names in named.values() for name in names]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", TABLES)
def test_a_model_has_the_weights_that_another_gave(name):
    layout, config = TABLES[name]
    one, other = built(config), built(config)
    rng = np.random.default_rng(1)
    for weight in one.weights:
        weight.assign(rng.normal(size=weight.shape))
    arrays = layout.arrays(one)
    assert layout.fill(other, arrays, PATH) == arrays.keys()
    ours, theirs = by_name(one), by_name(other)
    for weight in ours.keys() - {"target_embedding/embeddings"}:
        np.testing.assert_array_equal(ours[weight], theirs[weight])


def test_columns_of_one_matrix_are_several_arrays():
    model = built(POST_NORM)
    arrays = layouts.TRANSFORMERS.arrays(model)
    queries, keys, values = np.split(model.encoder.layers[1].self_attention.projection.kernel, 3, 1)
    for letter, columns in (("q", queries), ("k", keys), ("v", values)):
        matrix = arrays[f"model.encoder.layers.1.self_attn.{letter}_proj.weight"]
        np.testing.assert_array_equal(matrix, columns.T)


def test_a_program_that_needs_biases_gets_zeros():
    model = built(ModelConfig(**SIZES | {"attention_bias": False}))
    arrays = MARIAN.arrays(model)
    with_biases = MARIAN.arrays(model, with_biases=True)
    added = with_biases.keys() - arrays.keys()
    # Of 4 products in a layer of the encoder, 8 of the decoder, and of the logits.
    assert len(added) == 2 * (4 + 8) + 1
    assert not any(with_biases[name].any() for name in added)


def test_an_ssru_gets_no_bias_that_marian_does_not_have():
    layout = layouts.marian(norm_first=False, has_ssru=True)
    added = layout.arrays(built(SSRU), with_biases=True).keys() - layout.arrays(built(SSRU)).keys()
    assert added == {layout.bias}  # of the logits; the model has the biases of attention


def test_arrays_that_do_not_fit_are_errors():
    model = built(POST_NORM)
    arrays = MARIAN.arrays(model)
    name = "decoder_l2_ffn_W1"
    with pytest.raises(InputError, match=f"model.bin: the weights have no {name}, which the conf"):
        MARIAN.fill(model, {k: x for k, x in arrays.items() if k != name}, PATH)
    with pytest.raises(InputError, match=rf"{name} has the shape \(3,\), and .* needs \(8, 16\)"):
        MARIAN.fill(model, arrays | {name: np.ones(3)}, PATH)
