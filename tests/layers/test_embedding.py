"""Embeddings and logits by hand, and the variance of initial embeddings."""

import numpy as np
from keras import ops

from tf_transformer.layers import TokenEmbedding


def test_embeddings_are_rows_times_the_root_of_d_model():
    layer = TokenEmbedding(vocabulary_size=3, d_model=4)
    layer.build()
    layer.embeddings.assign(np.arange(12.0).reshape(3, 4))
    embedded = ops.convert_to_numpy(layer(np.array([[2, 0]])))
    np.testing.assert_array_equal(embedded, [[[16, 18, 20, 22], [0, 2, 4, 6]]])  # rows · √4


def test_logits_are_products_with_the_same_unscaled_matrix():
    layer = TokenEmbedding(vocabulary_size=3, d_model=2)
    layer.build()
    layer.embeddings.assign([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    logits = layer.logits(np.array([[[10.0, 1.0]]], "float32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(logits), [[[12, 34, 56]]])
    assert len(layer.weights) == 1


def test_scaled_embeddings_start_with_mean_zero_and_variance_one():
    layer = TokenEmbedding(vocabulary_size=1000, d_model=64)
    embedded = ops.convert_to_numpy(layer(np.arange(1000)))
    # 64,000 draws: the standard error of the mean is 0.004, that of the deviation 0.003.
    assert abs(embedded.mean()) < 0.02
    assert abs(embedded.std() - 1) < 0.015
