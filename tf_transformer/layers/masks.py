"""Boolean attention masks; True = may attend.

A mask broadcasts to the shape of attention scores, (B, H, T, S): batch, heads, queries, keys. This
package passes masks as explicit arguments. Keras can lose its implicit masks without a warning.
"""

import keras
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
    """Lets each position attend to itself and to earlier positions (paper section 3.2.3).

    Args:
        length: number of positions, T.

    Returns:
        bool tensor (1, 1, T, T); row t is True up to column t.

    Example:
        >>> np.asarray(causal_mask(3))[0, 0].astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    positions = ops.arange(length)
    return (positions[:, None] >= positions[None, :])[None, None]  # (1, 1, T, T)


def combine_masks(*masks: KerasTensor | None) -> KerasTensor | None:
    """Combines masks by logical and; skips None.

    Args:
        *masks: bool tensors that broadcast to one shape, or None.

    Returns:
        bool tensor; None if all masks are None.

    Example:
        >>> combine_masks(causal_mask(3), padding_mask(np.array([[7, 8, 0]])), None).shape
        TensorShape([1, 1, 3, 3])
    """
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined


def require_mask(
    name: str, mask: KerasTensor | None, query: KerasTensor, keys: KerasTensor, heads: int
) -> None:
    """Checks that a mask is one for the scores of queries (B, T, D) and keys (B, S, D').

    A mask has four axes, because (B, T, S) would broadcast as (H, T, S), and (B, S) as (T, S).

    Raises:
        ValueError: if the mask has a float dtype, not four axes, or sizes that do not broadcast to
            (B, H, T, S).
    """
    if mask is None:
        return
    scores = (query.shape[0], heads, query.shape[1], keys.shape[1])
    dtype, shape = keras.backend.standardize_dtype(mask.dtype), tuple(mask.shape)
    fits = all(
        size in (1, of_scores)
        for size, of_scores in zip(shape, scores, strict=False)
        if isinstance(size, int) and isinstance(of_scores, int)
    )
    if "float" in dtype or not fits or len(shape) != 4:
        raise ValueError(
            f"expected {name} as a bool tensor that broadcasts to (batch, heads, queries, keys), "
            f"here {scores}, got {dtype} of shape {shape}. Keys are no argument: they are made of "
            "the values. A mask (batch, queries, keys) needs an axis of heads, mask[:, None]. A "
            "mask (batch, keys) needs one of queries, too: mask[:, None, None]."
        )


def mask_of_keys(mask: KerasTensor | None, x: KerasTensor) -> KerasTensor | None:
    """Turns a mask that hides keys, (B or 1, 1, 1, T), into a mask (B, T) for x (B, T, D).

    Raises:
        ValueError: if the mask has another shape.
    """
    if mask is None:
        return None
    if len(mask.shape) != 4 or mask.shape[1] != 1 or mask.shape[2] != 1:
        raise ValueError(
            "local, strided and linear attention take a mask (B, 1, 1, T) that hides keys, got "
            f"{tuple(mask.shape)}. Leave out a causal mask: in a decoder they are always causal."
        )
    return ops.broadcast_to(mask[:, 0, 0], ops.shape(x)[:2])
