"""TokenMean against the mean over all tokens at once."""

import keras
import numpy as np
import pytest

from tf_transformer.training.metrics import TokenMean

# Batches of 1, 3 and 2 tokens: Σ = 12 over 6 tokens. The mean of the batches' means is 2.83.
BATCHES = [[5.0], [1.0, 0.5, 0.5], [2.0, 3.0]]


def updated(metric):
    for batch in BATCHES:
        metric.update_state(np.float32(sum(batch)), len(batch))
    return metric


def test_mean_is_over_tokens_and_not_over_batches():
    assert float(updated(TokenMean()).result()) == 2.0


def test_exponential_of_mean_nats_is_perplexity():
    np.testing.assert_allclose(updated(TokenMean(exponential=True)).result(), np.e**2, rtol=1e-6)


def test_random_batches_of_unequal_size():
    rng = np.random.default_rng(1)
    batches = [rng.exponential(size=size) for size in rng.integers(1, 50, 20)]
    metric = TokenMean()
    for batch in batches:
        metric.update_state(batch.sum(), batch.size)
    np.testing.assert_allclose(metric.result(), np.concatenate(batches).mean(), rtol=1e-5)


def test_reset_forgets_and_nothing_counted_is_zero():
    metric = updated(TokenMean())
    metric.reset_state()
    assert float(metric.result()) == 0.0
    metric.update_state(0.0, 0.0)  # a batch of padding only
    assert float(metric.result()) == 0.0


@pytest.mark.parametrize("exponential", [False, True])
def test_metric_survives_serialization(exponential):
    metric = TokenMean(exponential=exponential, name="perplexity")
    saved = keras.saving.serialize_keras_object(metric)
    restored = keras.saving.deserialize_keras_object(saved)
    assert isinstance(restored, TokenMean)
    assert (restored.exponential, restored.name) == (exponential, "perplexity")
