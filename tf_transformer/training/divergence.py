"""Stops a training that cannot recover: its losses are far too high, or not finite."""

import math

from tf_transformer.errors import InputError
from tf_transformer.training.checkpoint import Checkpoints
from tf_transformer.training.update import Updater

# Times the loss of a uniform guess, ln V. A new model has about ln V, and a spike of a training
# that recovers a few times that. At 10 ln V, the mean probability of the right token is V^-10.
FACTOR = 10


class DivergenceCheck:
    """Checks losses and gradients of a training.

    Training losses that are not finite do not count: the optimizer skips and counts these updates.

    Args:
        updater: the training.
        checkpoints: of the training.
        vocabulary_size: V.
        max_skipped: updates in a row whose gradients may be not finite, plus one.
    """

    def __init__(
        self, updater: Updater, checkpoints: Checkpoints, vocabulary_size: int, max_skipped: int
    ):
        self._updater = updater
        self._checkpoints = checkpoints
        self._vocabulary_size = vocabulary_size
        self._max_skipped = max_skipped
        self.start_interval()

    def start_interval(self) -> None:
        """Starts again at 0, as the updater's metrics do when they are read."""
        self._total, self._tokens = 0.0, 0.0

    def check_updates(self) -> None:
        """Checks the updates since the last call.

        Raises:
            InputError: when they show that the training has diverged.
        """
        self.check_gradients()
        if problem := self.problem_of_updates():
            raise self.error(problem)

    def check_gradients(self) -> None:
        """Raises an `InputError` when too many updates in a row were skipped."""
        skipped = int(self._updater.optimizer.skipped_in_a_row.numpy())
        if skipped >= self._max_skipped:
            raise InputError(
                f"{skipped} updates in a row, up to number {self._updater.next_batch:,}, were "
                f"skipped because their gradients were not finite. {self._advice()} Instead of "
                "train.precision=mixed_float16, use mixed_bfloat16 or float32."
            )

    def problem_of_updates(self) -> str:
        """The problem with the losses of the updates since the last call; empty without."""
        metric = self._updater.metrics["loss"]
        total, tokens = float(metric.total.numpy()), float(metric.tokens.numpy())
        new_total, new_tokens = total - self._total, tokens - self._tokens
        self._total, self._tokens = total, tokens
        return self.problem("loss", new_total / new_tokens) if new_tokens else ""

    def problem(self, name: str, loss: float) -> str:
        """The problem with a mean loss per token; empty when there is none."""
        guess = math.log(self._vocabulary_size)
        if loss <= FACTOR * guess:  # false for NaN
            return ""
        return (
            f"its {name} is {loss:.4g} per token; a uniform guess among {self._vocabulary_size:,} "
            f"tokens has {guess:.4g}"
        )

    def error(self, problem: str) -> InputError:
        """The error that ends the training."""
        return InputError(
            f"the training has diverged by update {self._updater.next_batch:,}: {problem}. "
            + self._advice()
        )

    def _advice(self) -> str:
        advice = "Lower train.learning_rate, raise train.warmup_steps or set train.clip_norm 1"
        latest = self._checkpoints.latest
        if not latest:
            return f"No checkpoint was saved. {advice}."
        return (
            f"The last checkpoint, of update {latest:,}, is whole. {advice}; in another --run_dir, "
            "with --train.init_from this one to keep what it has learned."
        )
