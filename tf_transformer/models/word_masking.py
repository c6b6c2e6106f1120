"""Masks whole words for a masked language model (Devlin et al. 2019)."""

from typing import Any, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.layers.shape import flatten_positions
from tf_transformer.text.special_ids import PAD_ID, UNK_ID

MASK_ID = UNK_ID  # no text has this id: bytes spell what the vocabulary lacks, even "<unk>"
CHOSEN = 0.15  # share of the words that are chosen
MASKED = 0.8  # share of the ids of a chosen word that become `MASK_ID`
RANDOM = 0.1  # share of these ids that become random ids; the rest stays
_WEYL = 0x9E3779B9 - 2**32  # odd; 2³² divided by the golden ratio


class MaskedIds(NamedTuple):
    """The inputs of a masked language model, and its labels."""

    inputs: KerasTensor  # int32 (B, T), with masks
    labels: KerasTensor  # int32 (B, T): the ids of chosen words; padding at all other places


@keras.saving.register_keras_serializable(package="tf_transformer")
class WordMasking(keras.layers.Layer):
    """Chooses 15% of the words and hides most of their ids.

    The model predicts all ids of a chosen word. It reads 80% of them as `MASK_ID`, 10% as a random
    id and 10% unchanged. Each id is drawn independently (Devlin et al. 2019, section 3.1, with the
    whole-word masking of their later models). In training, each call draws new numbers. Otherwise
    the numbers depend on the ids of a row only: every call, batch and padding gives the same ones.

    Args:
        vocabulary_size: number of token ids, V.
        seed: seed of the random numbers; None: drawn from Keras' global seed.

    Call arguments:
        ids: int tensor (B, T), 0 = padding.
        words: int tensor (B, T), the number of the word of each id: at least 1 and below T. Ids
            with the number 0 are never chosen.
        training: whether each call draws new numbers.
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
    """Selects labels (B, T) and states (B, T, D): a quarter of all positions and 64 more.

    Masked positions, whose label is not 0, come first. A small model spends most of its time on
    logits, so this loss costs a quarter of the time of a loss over all positions. If a batch has
    more masked ids than places, the rest does not count. With words of up to four ids, such a batch
    is nine standard deviations away. The results are labels (R,) and states (R, D), with
    R = B · T // 4 + 64, or B · T if this is less.
    """
    labels, states = ops.reshape(labels, (-1,)), flatten_positions(states)
    room = ops.shape(labels)[0] // 4 + 64
    first = ops.argsort(ops.cast(ops.equal(labels, PAD_ID), "int32"))[:room]
    return ops.take(labels, first), ops.take(states, first, axis=0)


def _numbers_of(ids: KerasTensor) -> KerasTensor:
    """Two numbers in [0, 1) for each place, which depend on the row's ids: float32 (2, B, T)."""
    places = ops.arange(ops.shape(ids)[1], dtype="int32")  # (T,)
    summands = ops.where(ids == PAD_ID, 0, _mix(ids + _mix(places * _WEYL)))
    rows = ops.sum(summands, axis=1)[:, None]  # (B, 1)
    bits = ops.stack([_mix(rows + places * _WEYL), _mix(rows - (places + 1) * _WEYL)])
    return ops.cast(_shifted_right(bits, 8), "float32") / 2**24


def _mix(x: KerasTensor) -> KerasTensor:
    """A bijection of 32 bits (C. Wellons' lowbias32): each input bit changes all output bits."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B - 2**32), (16, 1)):
        x = ops.bitwise_xor(x, _shifted_right(x, shift)) * factor
    return x


def _shifted_right(x: KerasTensor, bits: int) -> KerasTensor:
    """Shifts to the right and fills with zeros from the left, also for negative numbers."""
    return ops.bitwise_and(ops.right_shift(x, bits), 2 ** (32 - bits) - 1)
