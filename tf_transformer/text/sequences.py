"""Operations on rows of token ids."""

from keras import KerasTensor, ops

from tf_transformer.text.special_ids import BOS_ID, PAD_ID


def shift_right(ids: KerasTensor) -> KerasTensor:
    """Makes the decoder's input from labels: adds the start id, drops the last id (section 3.1).

    Args:
        ids: int tensor (B, T), labels.

    Returns:
        int tensor (B, T).

    Example:
        >>> np.asarray(shift_right(np.array([[7, 8, 2]]))).tolist()
        [[1, 7, 8]]
    """
    return ops.concatenate([ops.full_like(ids[:, :1], BOS_ID), ids[:, :-1]], axis=1)


def token_counts(ids: KerasTensor) -> KerasTensor:
    """Counts the tokens of each row, without padding.

    Args:
        ids: int tensor (B, T).

    Returns:
        int32 tensor (B,).
    """
    return ops.sum(ops.cast(ops.not_equal(ids, PAD_ID), "int32"), axis=1)
