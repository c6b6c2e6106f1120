"""Boolean attention masks; True = may attend.

A mask broadcasts to the shape of attention scores, (B, H, T, S): batch, heads, queries, keys. This
package passes masks as explicit arguments. Keras can lose its implicit masks without a warning.
"""

from keras import KerasTensor, ops

from tf_transformer.text.special_ids import PAD_ID


def padding_mask(ids: KerasTensor, pad_id: int = PAD_ID) -> KerasTensor:
    """Hides padding keys.

    Args:
        ids: int tensor (B, S) of token ids.
        pad_id: the id that marks padding.

    Returns:
        bool tensor (B, 1, 1, S), True where `ids` holds a real token.

    Example:
        >>> padding_mask(np.array([[7, 8, 0]])).shape
        TensorShape([1, 1, 1, 3])
    """
    return ops.not_equal(ids, pad_id)[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(length: int) -> KerasTensor:
    """Lets each of T positions attend to itself and to earlier ones (paper section 3.2.3).

    Returns:
        bool tensor (1, 1, T, T); row t is True up to column t.

    Example:
        >>> np.asarray(causal_mask(3))[0, 0].astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None, None]  # (1, 1, T, T)


def combine_masks(*masks: KerasTensor | None) -> KerasTensor | None:
    """Combines masks that broadcast to one shape by logical and; None if all masks are None."""
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined
