"""The SSRU against NumPy by its equations: whole sequences, masks, and one position at a time."""

import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers import SSRU, AlibiPosition, Decoder, Encoder, Positions
from tf_transformer.models.transformer import Transformer

BATCH, LENGTH, D_MODEL = 3, 9, 6
X = np.random.default_rng(1).normal(size=(BATCH, LENGTH, D_MODEL)).astype("float32")
REAL = np.array([9, 6, 1])  # positions of each sentence


def make_layer(**options):
    layer = SSRU(**options)
    layer.build(X.shape)
    return reference.randomize(layer)


def output(layer, *arguments, **options) -> np.ndarray:
    return reference.array(layer(*arguments, **options).output)


def test_outputs_equal_the_equations():
    layer = make_layer()
    found = layer(X)
    assert found.weights == ()
    expected = [reference.ssru(layer, x.astype("float64")) for x in X]
    np.testing.assert_allclose(reference.array(found.output), expected, rtol=0, atol=1e-5)


def test_one_position_at_a_time_equals_whole_sequences():
    """Two hypotheses read two sequences, and change places after each position."""
    layer, state = make_layer(), None
    whole = output(layer, X)
    state = layer.nothing(1)
    state = type(state)(*(ops.repeat(part, 2, axis=1) for part in state))
    order = [0, 1]
    for position in range(LENGTH):
        attended = layer(X[None, order, position], earlier=state)
        found = reference.array(attended.output)[0]
        np.testing.assert_allclose(found, whole[order, position], rtol=0, atol=1e-6)
        state = type(state)(*(ops.flip(part, axis=1) for part in attended.stored))
        order.reverse()


def test_the_state_after_a_sequence_is_that_of_its_newest_position():
    layer = make_layer()
    head, tail = layer(X[:, :5]), X[:, 5:6]
    found = output(layer, tail, earlier=head.stored)
    np.testing.assert_allclose(found, output(layer, X)[:, 5:6], rtol=0, atol=1e-6)


def test_hidden_positions_leave_the_state_as_it_is():
    """Before, inside and after a sentence."""
    layer = make_layer()
    hidden = [0, 1, 4, 8]
    mask = ~np.isin(np.arange(LENGTH), hidden)
    found = layer(X, attention_mask=np.broadcast_to(mask, (BATCH, 1, 1, LENGTH)))
    alone = layer(X[:, mask])
    np.testing.assert_allclose(
        reference.array(found.output)[:, mask], reference.array(alone.output), rtol=0, atol=1e-6
    )
    for one, other in zip(found.stored, alone.stored, strict=True):
        np.testing.assert_allclose(reference.array(one), reference.array(other), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (X, "expected attention_mask as a bool tensor"),
        (np.ones((LENGTH, LENGTH), bool), "expected attention_mask as a bool tensor"),
        (np.ones((1, 1, LENGTH, LENGTH), bool), r"take a mask \(B, 1, 1, T\) that hides keys, got"),
    ],
)
def test_what_does_not_hide_positions_for_all_alike_is_an_error(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_layer()(X, attention_mask=wrong)


def test_later_positions_change_nothing_before_them():
    layer, changed = make_layer(), X.copy()
    changed[:, 4] += 1.0
    changes = np.abs(output(layer, changed) - output(layer, X)).max(axis=(0, 2))
    assert changes[:4].max() == 0
    assert changes[4:].min() > 1e-4


def test_an_encoder_and_biases_of_positions_are_errors():
    with pytest.raises(InputError, match="reads from left to right: expected a decoder"):
        SSRU(is_causal=False)
    with pytest.raises(InputError, match="reads from left to right: expected a decoder"):
        Encoder(num_layers=1, attention="ssru")
    with pytest.raises(InputError, match=r"model\.attention must be one of full, local, strided"):
        ModelConfig(attention="ssru")
    with pytest.raises(InputError, match=r"model\.decoder_attention=ssru has no scores that"):
        ModelConfig(decoder_attention="ssru", position="relative")
    positions = Positions(AlibiPosition(), np.arange(LENGTH), np.arange(LENGTH)[None])
    with pytest.raises(ValueError, match="an SSRU has no scores that AlibiPosition could change"):
        make_layer()(X, positions=positions)
    with pytest.raises(InputError, match="SSRU does not read num_heads"):
        SSRU(num_heads=2)


def test_a_decoder_of_ssru_has_cross_attention_with_heads_and_dropout():
    sizes = {"num_heads": 2, "key_dim": 3, "d_ff": 4, "attention_dropout_rate": 0.5}
    decoder = Decoder(num_layers=2, attention="ssru", **sizes)
    result = decoder(X, X)
    assert [np.shape(weights) for weights in result.cross_attention] == [
        (BATCH, 2, LENGTH, LENGTH)
    ] * 2
    assert result.attention == [(), ()]


def test_the_model_option_makes_an_ssru_in_each_layer_of_the_decoder():
    config = ModelConfig(num_layers=2, d_model=8, decoder_attention="ssru")
    model = Transformer(7, config)
    assert config.encoder.attention == "full"
    assert [type(layer.self_attention) for layer in model.decoder.layers] == [SSRU] * 2
