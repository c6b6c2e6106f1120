"""Masks whole words, for a model that learns to restore them (Devlin et al. 2019)."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.flatten import flatten_positions
from tf_transformer.text.special_ids import PAD_ID, UNK_ID

MASK_ID = UNK_ID  # in no text: bytes spell what the vocabulary lacks, also the characters <unk>
CHOSEN = 0.15  # of the words
MASKED = 0.8  # of the ids of a chosen word; they become `MASK_ID`
RANDOM = 0.1  # of these ids; they become random ids, and the rest stays
_WEYL = 0x9E3779B9 - 2**32  # odd, 2³² over the golden ratio


class MaskedIds(NamedTuple):
    """The ids that a model reads and those that it predicts."""

    inputs: KerasTensor  # int32 (B, T), with masks
    labels: KerasTensor  # int32 (B, T): the ids of chosen words, elsewhere padding


@keras.saving.register_keras_serializable(package="tf_transformer")
class WordMasking(keras.layers.Layer):
    """Chooses 15% of the words and hides most of their ids.

    All ids of a chosen word are predicted. Of these 80% are read as `MASK_ID`, 10% as a random id
    and 10% unchanged, each drawn for itself (Devlin et al. 2019, section 3.1, with their later
    masking of whole words).

    In training each call draws anew. Otherwise the numbers are a function of the ids of a row:
    the same in every call, in any batch and with any padding.

    Args:
        vocabulary_size: number of token ids, V.
        seed: of the random numbers; drawn from Keras' global one when None.

    Call arguments:
        ids: int tensor (B, T), 0 = padding.
        words: int tensor (B, T), the number of the word that an id belongs to, from 1 on and
            below T; 0 for ids that are never chosen.
        training: whether each call draws anew.

    Returns:
        `MaskedIds`.

    Example:
        >>> masking = WordMasking(vocabulary_size=300)
        >>> inputs, labels = masking(np.array([[270, 271, 2]]), np.array([[1, 1, 0]]))
        >>> inputs.shape, labels.shape
        (TensorShape([1, 3]), TensorShape([1, 3]))
    """

    def __init__(self, vocabulary_size: int, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, ids: KerasTensor, words: KerasTensor, training: bool | None = None) -> MaskedIds:
        ids, words = (ops.cast(x, "int32") for x in (ids, words))
        if training:
            numbers = keras.random.uniform((2, *ops.shape(ids)), seed=self.seed_generator)
        else:
            numbers = _numbers_of(ids)
        of_words = ops.take_along_axis(numbers[0], words, axis=1)  # one number for each word
        of_ids = numbers[1]
        chosen = ops.logical_and(of_words < CHOSEN, words > 0)
        first = UNK_ID + 1  # the ids below are special
        drawn = (of_ids - MASKED) / RANDOM * (self.vocabulary_size - first)
        drawn = first + ops.clip(ops.cast(drawn, "int32"), 0, self.vocabulary_size - first - 1)
        replaced = ops.where(of_ids < MASKED, MASK_ID, drawn)
        replaced = ops.where(of_ids < MASKED + RANDOM, replaced, ids)
        return MaskedIds(ops.where(chosen, replaced, ids), ops.where(chosen, ids, PAD_ID))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"vocabulary_size": self.vocabulary_size, "seed": self.seed}


def at_masks(labels: KerasTensor, states: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
    """The labels and states of masked positions first, and at most a quarter of all and 64 more.

    A loss over these costs a quarter of a loss over all positions, and most of the time of a small
    model is spent on logits. With a share of 0.15 and words of up to four ids, a batch with more
    masked ids is nine standard deviations away; they would not count.

    Args:
        labels: int tensor (B, T), 0 where nothing is masked.
        states: float tensor (B, T, D).

    Returns:
        (R,) and (R, D).
    """
    labels, states = ops.reshape(labels, (-1,)), flatten_positions(states)
    room = ops.shape(labels)[0] // 4 + 64
    first = ops.argsort(ops.cast(ops.equal(labels, PAD_ID), "int32"))[:room]
    return ops.take(labels, first), ops.take(states, first, axis=0)


def _numbers_of(ids: KerasTensor) -> KerasTensor:
    """Two numbers in [0, 1) for each place, float32 (2, B, T): functions of the ids of its row."""
    places = ops.arange(ops.shape(ids)[1], dtype="int32")  # (T,)
    summands = ops.where(ids == PAD_ID, 0, _mix(ids + _mix(places * _WEYL)))
    rows = ops.sum(summands, axis=1)[:, None]  # (B, 1)
    bits = ops.stack([_mix(rows + places * _WEYL), _mix(rows - (places + 1) * _WEYL)])
    return ops.cast(_shifted_right(bits, 8), "float32") / 2**24


def _mix(x: KerasTensor) -> KerasTensor:
    """A bijection of 32 bits (C. Wellons' lowbias32): every bit changes every other."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B - 2**32), (16, 1)):
        x = ops.bitwise_xor(x, _shifted_right(x, shift)) * factor
    return x


def _shifted_right(x: KerasTensor, bits: int) -> KerasTensor:
    """Zeros come in from the left, also for negative numbers."""
    return ops.bitwise_and(ops.right_shift(x, bits), 2 ** (32 - bits) - 1)
