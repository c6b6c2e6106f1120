"""The training that every contender does: sizes, batches, optimizer, and what is checked of it."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from workload import FIRST_FREE_ID, SHAPES, START_ID, Shape

# Every pass makes one update with each of as many batches, so that none is in a cache when it
# comes, and losses of passes can be compared.
BATCHES = 4
LABEL_SMOOTHING = 0.1
DROPOUT = 0.1
# Without warm-up, a rate at which post-norm still trains.
LEARNING_RATE = 1e-4
BETAS = (0.9, 0.98)
EPSILON = 1e-9

# Biases in attention and the norms' own are optional in some libraries and not in others.
_SHARE_OF_PARAMETERS = 0.02
_FACTOR_OF_FIRST_LOSS = 1.25


class Work(NamedTuple):
    """What an update is of.

    Attributes:
        shape: sizes of the model.
        sentences: a batch, B.
        tokens: a source, and a target, without padding.
    """

    shape: Shape
    sentences: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.shape}; {self.sentences} × {self.tokens} target tokens an update"


WORKS = {"base": Work(SHAPES["base"], 16, 32), "tiny": Work(SHAPES["tiny"], 64, 24)}


class Batch(NamedTuple):
    """Ids, each (B, T) int32."""

    source: np.ndarray
    target: np.ndarray  # the decoder's input: the start id, and the labels but for the last
    labels: np.ndarray


class Task(NamedTuple):
    """A contender ready to be measured.

    Attributes:
        parameters: how many numbers are trained.
        train: makes one update with each batch; gives the mean of their losses, and so returns
            no sooner than all is computed.
    """

    parameters: int
    train: Callable[[], float]


def batches(work: Work) -> list[Batch]:
    """The same random batches for every contender."""
    rng = np.random.default_rng(1)
    size = (BATCHES, 2, work.sentences, work.tokens)
    ids = rng.integers(FIRST_FREE_ID, work.shape.vocabulary_size, size, np.int32)
    return [Batch(source, shifted(labels), labels) for source, labels in ids]


def shifted(labels: np.ndarray) -> np.ndarray:
    """The decoder's input for these labels."""
    return np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)


def sinusoids(work: Work) -> np.ndarray:
    """Positional encodings (T, D), float32, for libraries that have none."""
    rates = 10_000.0 ** (-np.arange(0, work.shape.d_model, 2) / work.shape.d_model)
    angles = np.arange(work.tokens)[:, None] * rates
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return pairs.reshape(work.tokens, -1).astype(np.float32)


def parameters(shape: Shape) -> int:
    """Of our model: attention without biases, one embedding matrix for all."""
    size, hidden = shape.d_model, shape.d_ff
    attention, norm = 4 * size**2, 2 * size
    feed_forward = 2 * size * hidden + hidden + size
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return shape.vocabulary_size * size + shape.num_layers * (encoder + decoder)


def check_parameters(found: int, shape: Shape) -> None:
    """Refuses a model of another size: its speed would compare nothing.

    Raises:
        RuntimeError: when the number is more than rounding and optional biases away from ours.
    """
    expected = parameters(shape)
    if abs(found - expected) > _SHARE_OF_PARAMETERS * expected:
        raise RuntimeError(f"expected about {expected:,} parameters, got {found:,}.")


def check_losses(losses: Sequence[float], vocabulary_size: int) -> None:
    """Refuses a training that does not train.

    Args:
        losses: means of the passes, from the first one on.
        vocabulary_size: untrained weights know nothing, so the first loss is near its logarithm.

    Raises:
        RuntimeError: when a loss is not finite, the first is not that of untrained weights, or
            the last is not below the first, although the batches are the same.
    """
    said = ", ".join(f"{loss:.3f}" for loss in losses)
    if not all(math.isfinite(loss) for loss in losses):
        raise RuntimeError(f"expected finite losses, got {said}.")
    untrained = math.log(vocabulary_size)
    if not untrained / _FACTOR_OF_FIRST_LOSS < losses[0] < untrained * _FACTOR_OF_FIRST_LOSS:
        raise RuntimeError(f"expected a first loss near {untrained:.3f}, got {said}.")
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"expected losses that fall, got {said}.")
