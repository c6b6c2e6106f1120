"""Logits of steps, with a matrix that is transposed once or that the caller stores."""

import numpy as np
from keras import ops

from tf_transformer.decoding.step_logits import step_logits, transposed, with_transposed
from tf_transformer.layers import TokenEmbedding

STATES = np.array([[[10.0, 1.0]]], "float32")


def embedding() -> TokenEmbedding:
    layer = TokenEmbedding(vocabulary_size=3, d_model=2)
    layer.build()
    layer.embeddings.assign([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    return layer


def test_steps_have_the_logits_of_the_embedding():
    layer = embedding()
    np.testing.assert_array_equal(ops.convert_to_numpy(transposed(layer)), [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_array_equal(
        ops.convert_to_numpy(step_logits(layer)(STATES)), [[[12, 34, 56]]]
    )


def test_a_stored_matrix_serves_its_embedding_inside_of_the_context_only():
    layer, other = embedding(), embedding()
    with with_transposed(layer, ops.ones((2, 3))):
        stored = step_logits(layer)(STATES)
        of_other = step_logits(other)(STATES)
    np.testing.assert_array_equal(ops.convert_to_numpy(stored), [[[11, 11, 11]]])
    for logits in (of_other, step_logits(layer)(STATES)):
        np.testing.assert_array_equal(ops.convert_to_numpy(logits), [[[12, 34, 56]]])
