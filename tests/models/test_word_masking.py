"""Masking of whole words: shares of words and ids, whole words only, fixed outside training."""

import numpy as np
import pytest
from keras import ops

from tf_transformer.losses.cross_entropy import token_losses
from tf_transformer.models.word_masking import MASK_ID, WordMasking, at_masks

VOCABULARY = 500
RANDOM = np.random.default_rng(1)
# Words of 1 to 4 ids; the last ids of a row are an end, which is no word, and padding.
WORDS = np.repeat([np.repeat(np.arange(1, 41), np.arange(40) % 4 + 1)], 400, axis=0)
WORDS = np.concatenate([WORDS, np.zeros((400, 5), int)], axis=1)
IDS = np.where(WORDS > 0, RANDOM.integers(4, VOCABULARY, WORDS.shape), 0)
IDS[:, -5] = 2

each_mode = pytest.mark.parametrize("training", [True, False])


def masked(ids, words, training, seed=1):
    found = WordMasking(VOCABULARY, seed=seed)(ids, words, training=training)
    return [ops.convert_to_numpy(each) for each in found]


def assert_rate(hits, total, rate):
    """Fails about once in a million if hits have this rate: 4.9 standard deviations."""
    assert abs(hits - rate * total) < 4.9 * np.sqrt(rate * (1 - rate) * total), hits / total


@each_mode
def test_shares_of_words_and_ids(training):
    inputs, labels = masked(IDS, WORDS, training)
    chosen = labels != 0
    starts = np.diff(WORDS, axis=1, prepend=0) > 0
    assert_rate(chosen[starts].sum(), starts.sum(), 0.15)
    ids, read = IDS[chosen], inputs[chosen]
    other = (read != MASK_ID) & (read != ids)
    assert_rate((read == MASK_ID).sum(), len(ids), 0.8)
    assert_rate(other.sum(), len(ids), 0.1 * (1 - 1 / (VOCABULARY - 4)))
    assert_rate((read == ids).sum(), len(ids), 0.1 * (1 + 1 / (VOCABULARY - 4)))
    assert read[other].min() >= 4
    assert read[other].max() < VOCABULARY
    assert_rate((read[other] < VOCABULARY // 2).sum(), other.sum(), 246 / 496)


@each_mode
def test_whole_words_are_chosen_and_the_rest_is_unchanged(training):
    inputs, labels = masked(IDS, WORDS, training)
    for row, words in zip(labels, WORDS, strict=True):
        chosen = set(words[row != 0])
        assert 0 not in chosen
        np.testing.assert_array_equal(row != 0, np.isin(words, list(chosen)))
    np.testing.assert_array_equal(inputs[labels == 0], IDS[labels == 0])
    np.testing.assert_array_equal(labels[labels != 0], IDS[labels != 0])


def test_in_training_each_call_draws_anew_and_each_seed_its_own():
    layer, same = WordMasking(VOCABULARY, seed=1), WordMasking(VOCABULARY, seed=1)
    first, second = (np.asarray(layer(IDS, WORDS, training=True)[1]) for _ in range(2))
    assert 0.2 < ((first != 0) != (second != 0)).mean() < 0.3  # 2 · 0.15 · 0.85
    np.testing.assert_array_equal(first, same(IDS, WORDS, training=True)[1])


def test_otherwise_masks_are_a_function_of_the_ids_of_a_row():
    """Any batch, padding and seed; equal words of different rows have different masks."""
    _, labels = masked(IDS, WORDS, False)
    _, of_one = masked(IDS[7:8, :-4], WORDS[7:8, :-4], False, seed=2)
    np.testing.assert_array_equal(of_one[0], labels[7, :-4])
    other = IDS.copy()
    other[:, 0] = 4 + (other[:, 0] - 3) % (VOCABULARY - 4)  # another first id
    _, others = masked(other, WORDS, False)
    assert 0.2 < ((labels != 0) != (others != 0)).mean() < 0.3


def test_losses_of_masked_positions_are_those_of_all():
    _, labels = masked(IDS[:40], WORDS[:40], True)
    states = RANDOM.normal(size=(*labels.shape, 6)).astype("float32")
    embeddings = RANDOM.normal(size=(VOCABULARY, 6)).astype("float32")
    some, their_states = at_masks(labels, states)
    assert len(some) == labels.size // 4 + 64
    expected = token_losses(labels, states, embeddings)
    found = token_losses(some, their_states, embeddings)
    np.testing.assert_allclose(list(map(float, found)), list(map(float, expected)), rtol=1e-5)


def test_masks_equal_those_of_plain_integers():
    """On every backend: other masks would change the validation loss of a run that goes on."""
    _, labels = masked(IDS[:3], WORDS[:3], False)
    for row, (ids, words) in enumerate(zip(IDS[:3], WORDS[:3], strict=True)):
        weyl, total = 0x9E3779B9, 0
        for place, token in enumerate(ids):
            total += mix(int(token) + mix(place * weyl)) if token else 0
        chosen = [
            word > 0 and (mix(total + int(word) * weyl) >> 8) / 2**24 < 0.15 for word in words
        ]
        np.testing.assert_array_equal(labels[row] != 0, chosen)


def mix(x):
    """lowbias32, https://github.com/skeeto/hash-prospector, in Python's integers."""
    x %= 2**32
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    return x ^ x >> 16
