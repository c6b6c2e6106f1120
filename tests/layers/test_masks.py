"""Masks by hand."""

import numpy as np
from keras import ops

from tf_transformer.layers import causal_mask, combine_masks, padding_mask


def test_padding_mask_hides_id_zero_in_every_head_and_query():
    mask = ops.convert_to_numpy(padding_mask(np.array([[7, 8, 0], [9, 0, 0]])))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, [[[[True, True, False]]], [[[True, False, False]]]])


def test_padding_mask_of_another_padding_id():
    mask = ops.convert_to_numpy(padding_mask(np.array([[3, 0, 5]]), pad_id=5))
    np.testing.assert_array_equal(mask, [[[[True, True, False]]]])


def test_causal_mask_allows_a_position_itself_and_earlier_ones():
    mask = ops.convert_to_numpy(causal_mask(3))
    assert mask.dtype == bool
    by_hand = [[True, False, False], [True, True, False], [True, True, True]]
    np.testing.assert_array_equal(mask, [[by_hand]])


def test_combined_masks_allow_what_every_mask_allows():
    mask = combine_masks(None, causal_mask(3), None, padding_mask(np.array([[0, 4, 5]])))
    by_hand = [[False, False, False], [False, True, False], [False, True, True]]
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), [[by_hand]])


def test_combining_no_masks_gives_none():
    assert combine_masks() is None
    assert combine_masks(None, None) is None
