"""The training of each system: sizes, batches and optimizer; and the checks of it."""

import math
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.harness.shapes import FIRST_FREE_ID, PAD_ID, START_ID, Shape
from benchmarks.harness.tasks import Setting

# Each run makes an update with each of these batches, so that no batch is still in a cache when
# it is used again, and the losses of runs can be compared.
BATCHES = 4
TEXT_BATCHES = 16  # of a text
LABEL_SMOOTHING = 0.1
DROPOUT = 0.1
# Without warm-up, a rate at which a post-norm model still trains.
LEARNING_RATE = 1e-4
BETAS = (0.9, 0.98)
EPSILON = 1e-9

_FILE = "batches.npz"
# Biases in attention are optional in some libraries and not in others.
_PARAMETER_TOLERANCE = 0.02
_FIRST_LOSS_FACTOR = 1.25


class Cell(NamedTuple):
    """The batch of an update.

    Attributes:
        sentences: of a batch, B; 0: batches of a text, with padding.
        tokens: of a source, and of a target; of a text: of the longest.
        dtype: of the products, float32 or bfloat16. Weights are float32.
    """

    sentences: int
    tokens: int
    dtype: str = "float32"

    @property
    def is_text(self) -> bool:
        """Whether the batches come from a text; see `text.py`."""
        return not self.sentences

    @property
    def policy(self) -> str:
        """The dtype policy of a Keras model."""
        return "float32" if self.dtype == "float32" else f"mixed_{self.dtype}"

    def __str__(self) -> str:
        size = f"{self.sentences} × {self.tokens} tokens"
        size = f"text of at most {self.tokens} tokens" if self.is_text else size
        return size if self.dtype == "float32" else f"{size}, {self.dtype}"


CELLS = {"base": Cell(16, 32), "tiny": Cell(64, 24)}


class Batch(NamedTuple):
    """Ids, each (B, T) int32."""

    source: np.ndarray
    target: np.ndarray  # the decoder's input: the start id, and the labels without the last
    labels: np.ndarray


def batches(shape: Shape, cell: Cell) -> list[Batch]:
    """The same random batches for every system."""
    rng = np.random.default_rng(1)
    size = (BATCHES, 2, cell.sentences, cell.tokens)
    ids = rng.integers(FIRST_FREE_ID, shape.vocabulary_size, size, np.int32)
    return [Batch(source, shifted(labels), labels) for source, labels in ids]


def batches_of(setting: Setting, cell: Cell) -> list[Batch]:
    """The batches of a cell: random batches, or the batches from `write_batches`."""
    if not cell.is_text:
        return batches(setting.shape, cell)
    with np.load(setting.shared / _FILE) as arrays:
        ids = [(arrays[f"source{n}"], arrays[f"labels{n}"]) for n in range(len(arrays) // 2)]
    return [Batch(source, shifted(labels), labels) for source, labels in ids]


def write_batches(folder: pathlib.Path, made: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Writes sources and labels, each (B, T) with padding, for all systems."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"source{n}": source for n, (source, _) in enumerate(made)}
    np.savez(folder / _FILE, **arrays, **{f"labels{n}": ids for n, (_, ids) in enumerate(made)})


def shifted(labels: np.ndarray) -> np.ndarray:
    """The decoder's input for these labels."""
    return np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)


def sinusoids(shape: Shape, tokens: int) -> np.ndarray:
    """Positional encodings (T, D), float32, for libraries that have none."""
    rates = 10_000.0 ** (-np.arange(0, shape.d_model, 2) / shape.d_model)
    angles = np.arange(tokens)[:, None] * rates
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return pairs.reshape(tokens, -1).astype(np.float32)


def tokens_of(made: Sequence[Batch]) -> int:
    """Target tokens of a run, padding not counted."""
    return sum(int(np.count_nonzero(batch.labels != PAD_ID)) for batch in made)


def parameters(shape: Shape) -> int:
    """Parameters of this project's model: attention without biases, one embedding matrix."""
    size, hidden = shape.d_model, shape.d_ff
    attention, norm = 4 * size**2, 2 * size
    feed_forward = 2 * size * hidden + hidden + size
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return shape.vocabulary_size * size + shape.num_layers * (encoder + decoder)


def check_parameters(found: int, shape: Shape) -> None:
    """Refuses a model of another size.

    Raises:
        RuntimeError: when the number differs by more than optional biases.
    """
    expected = parameters(shape)
    if abs(found - expected) > _PARAMETER_TOLERANCE * expected:
        raise RuntimeError(f"expected about {expected:,} parameters, got {found:,}.")


def check_losses(losses: Sequence[float], vocabulary_size: int) -> None:
    """Refuses a training run that does not train.

    Args:
        losses: mean losses of the runs, from the first run.
        vocabulary_size: number of tokens, V. Untrained weights have a loss near ln V.

    Raises:
        RuntimeError: for a loss that is not finite; for a first loss far from ln V; for a last loss
            that is not below the first, although all runs have the same batches.
    """
    listed = ", ".join(f"{loss:.3f}" for loss in losses)
    if not all(math.isfinite(loss) for loss in losses):
        raise RuntimeError(f"expected finite losses, got {listed}.")
    untrained = math.log(vocabulary_size)
    if not untrained / _FIRST_LOSS_FACTOR < losses[0] < untrained * _FIRST_LOSS_FACTOR:
        raise RuntimeError(f"expected a first loss near {untrained:.3f}, got {listed}.")
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"expected losses that fall, got {listed}.")
