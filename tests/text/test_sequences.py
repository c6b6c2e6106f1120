"""Operations on rows of ids, by hand."""

import numpy as np

from tf_transformer.text.sequences import shift_right, token_counts


def test_shift_right_by_hand():
    shifted = shift_right(np.array([[7, 8, 2], [9, 2, 0]]))
    np.testing.assert_array_equal(shifted, [[1, 7, 8], [1, 9, 2]])


def test_token_counts_by_hand():
    np.testing.assert_array_equal(token_counts(np.array([[7, 8, 2], [9, 0, 0]])), [3, 1])
