"""The loss of guided alignment against NumPy, and its effect on one head of a model."""

import numpy as np
import pytest

from tf_transformer.config import DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.losses.choice import make_loss
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.losses.guided_alignment import GuidedAlignment, alignment_loss
from tf_transformer.models.transformer import Transformer

SOURCE = np.int32([[5, 6, 7, 2], [8, 2, 0, 0]])
TARGET, LABELS = np.int32([[1, 9, 4], [1, 5, 0]]), np.int32([[9, 4, 2], [5, 2, 0]])
# Two source words of one target word, and two linked words of two pieces each; then zeros.
LINKS = np.int32([[0, 1, 0, 1, 2, 3, 0, 1, 1, 3, 1, 3], [0, 1, 0, 1, *[0] * 8]])
LINKED = [{(0, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)}, {(0, 0)}]  # (source, target) pieces


def oracle(attention, linked):
    """Σ over target pieces of -mean(ln A) over their linked source pieces."""
    total = 0.0
    for weights, links in zip(attention.astype(np.float64), linked, strict=True):
        for target in {target for _, target in links}:
            total -= np.mean([np.log(weights[t, s]) for s, t in links if t == target])
    return total


def random_attention(shape):
    weights = np.random.default_rng(1).random(shape, np.float32)
    return weights / weights.sum(-1, keepdims=True)


def test_the_loss_is_that_of_the_equation():
    attention = random_attention((2, 3, 4))
    np.testing.assert_allclose(
        alignment_loss(attention, LINKS), oracle(attention, LINKED), rtol=1e-5
    )


def test_links_of_no_piece_and_equal_links_change_nothing():
    attention = random_attention((2, 3, 4))
    more = np.concatenate([LINKS, np.zeros_like(LINKS), LINKS], axis=1)
    np.testing.assert_allclose(
        alignment_loss(attention, LINKS), alignment_loss(attention, more), rtol=1e-6
    )
    assert float(alignment_loss(attention, np.zeros((2, 4), "int32"))) == 0.0


def test_attention_of_zero_has_a_finite_loss():
    assert np.isfinite(alignment_loss(np.float32([[[1, 0]]]), np.int32([[1, 2, 0, 1]])))


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (-1, 0), (-2, -1)])
def test_the_weighted_loss_of_one_head_is_added_in_training_alone(layer, head):
    model = Transformer(11, ModelConfig(num_layers=2, d_model=8, num_heads=2, dropout_rate=0.0))
    model.build()
    batch = (SOURCE, TARGET), LABELS
    plain = CrossEntropy(0.1).losses(model, *batch, True)
    guided = GuidedAlignment(0.1, 0.5, layer, head)
    weights = np.asarray(model.run(batch[0]).cross_attention[layer])
    attention = weights.mean(1) if head < 0 else weights[:, head]
    added = 0.5 * oracle(attention, LINKED)
    losses = guided.losses(model, *batch, True, LINKS)
    np.testing.assert_allclose(losses.loss, float(plain.loss) + added, rtol=1e-5)
    np.testing.assert_allclose(losses[1:], plain[1:], rtol=1e-6)
    for training, links in ((False, LINKS), (True, None)):
        np.testing.assert_array_equal(guided.losses(model, *batch, training, links), plain)


def test_options_choose_the_loss_and_its_head():
    loss = make_loss(
        TrainConfig(guided_alignment_weight=0.05, label_smoothing=0.2, word_dropout=0.1),
        DecodeConfig(alignment_layer=-2, alignment_head=3),
    )
    assert type(loss) is GuidedAlignment
    assert (loss.weight, loss.layer, loss.head, loss.label_smoothing) == (0.05, -2, 3, 0.2)
    assert loss.word_dropout.rate == 0.1
    with pytest.raises(InputError, match=r"one run of the model, and train\.consistency r_drop"):
        TrainConfig(guided_alignment_weight=0.05, consistency="r_drop")
