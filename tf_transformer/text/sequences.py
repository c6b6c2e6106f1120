"""Operations on rows of token ids."""

from keras import KerasTensor, ops

from tf_transformer.text.special_ids import BOS_ID, PAD_ID


def shift_right(ids: KerasTensor) -> KerasTensor:
    """The decoder's input, int (B, T), from labels: int (B, T).

    Adds the start id, and drops the last id (section 3.1).

    Example:
        >>> np.asarray(shift_right(np.array([[7, 8, 2]]))).tolist()
        [[1, 7, 8]]
    """
    return ops.concatenate([ops.full_like(ids[:, :1], BOS_ID), ids[:, :-1]], axis=1)


def token_counts(ids: KerasTensor) -> KerasTensor:
    """The number of tokens in each row of ids, int (B, T), without padding: int32 (B,)."""
    return ops.sum(ops.cast(ops.not_equal(ids, PAD_ID), "int32"), axis=1)
