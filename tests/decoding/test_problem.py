"""Functions that all searches share."""

import numpy as np
from keras import ops

from tf_transformer.decoding import LengthPenalty
from tf_transformer.decoding.problem import set_column


def test_length_penalty_by_hand():
    """((5 + length) / 6)^α: 1 at length 1 for every α; (12 / 6)^α at 7; (18 / 6)^α at 13."""
    lengths = np.int32([1, 7, 13])
    for alpha, expected in [(0.0, [1, 1, 1]), (1.0, [1, 2, 3]), (2.0, [1, 4, 9])]:
        penalty = ops.convert_to_numpy(LengthPenalty(alpha)(lengths))
        np.testing.assert_allclose(penalty, expected, rtol=1e-6)


def test_the_length_penalty_of_transformers_is_a_power():
    penalty = LengthPenalty(2.0, offset=0.0)(np.int32([1, 7, 13]))
    np.testing.assert_allclose(ops.convert_to_numpy(penalty), [1, 49, 169], rtol=1e-6)


def test_set_column_changes_one_column():
    ids = ops.zeros((2, 3), "int32")
    changed = set_column(ids, 1, ops.convert_to_tensor(np.int32([7, 8])))
    np.testing.assert_array_equal(ops.convert_to_numpy(changed), [[0, 7, 0], [0, 8, 0]])
