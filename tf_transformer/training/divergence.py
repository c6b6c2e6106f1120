"""Stops a training run whose losses are far too high or not finite, because it cannot recover."""

import math
from dataclasses import dataclass

from tf_transformer.errors import InputError
from tf_transformer.training.checkpoint import Checkpoints
from tf_transformer.training.update import Updater

# Multiple of ln V, the loss of a uniform guess. A new model has about ln V. A spike of a training
# run that recovers is a few times higher. At 10 ln V, right tokens have the mean probability V^-10.
FACTOR = 10
MAX_SKIPPED = 20  # updates in a row with gradients that are not finite


@dataclass
class DivergenceCheck:
    """Checks losses and gradients of a training run.

    The check of losses ignores training losses that are not finite: the optimizer skips and counts
    these updates.
    """

    updater: Updater
    checkpoints: Checkpoints
    vocabulary_size: int
    _total: float = 0.0
    _tokens: float = 0.0

    def start_interval(self) -> None:
        """Resets the sums of the losses, as a read of the updater's metrics resets the metrics."""
        self._total, self._tokens = 0.0, 0.0

    def check_updates(self) -> None:
        """Raises an `InputError` when the updates since the last call have diverged."""
        self.check_gradients()
        if problem := self.problem_of_updates():
            raise self.error(problem)

    def check_gradients(self) -> None:
        """Raises an `InputError` when too many updates in a row were skipped."""
        skipped = int(self.updater.optimizer.skipped_in_a_row.numpy())
        if skipped >= MAX_SKIPPED:
            raise InputError(
                f"{skipped} updates in a row, up to number {self.updater.next_batch:,}, were "
                f"skipped because their gradients were not finite. {self._advice()} Instead of "
                "train.precision=mixed_float16, use mixed_bfloat16 or float32."
            )

    def problem_of_updates(self) -> str:
        """The problem with the losses of the updates since the last call; empty if none."""
        metric = self.updater.metrics["loss"]
        total, tokens = float(metric.total.numpy()), float(metric.tokens.numpy())
        new_total, new_tokens = total - self._total, tokens - self._tokens
        self._total, self._tokens = total, tokens
        return self.problem("loss", new_total / new_tokens) if new_tokens else ""

    def problem(self, name: str, loss: float) -> str:
        """The problem with a mean loss per token, in nats; empty if there is none."""
        guess = math.log(self.vocabulary_size)
        if loss <= FACTOR * guess:  # false for NaN
            return ""
        return (
            f"its {name} is {loss:.4g} per token; a uniform guess among {self.vocabulary_size:,} "
            f"tokens has {guess:.4g}"
        )

    def error(self, problem: str) -> InputError:
        """The error with a problem and advice; ends the training."""
        if not self.updater.next_batch:
            return InputError(
                f"the weights of train.init_from do not suit the validation text: {problem}. Give "
                "another --train.init_from."
            )
        return InputError(
            f"the training has diverged by update {self.updater.next_batch:,}: {problem}. "
            + self._advice()
        )

    def _advice(self) -> str:
        advice = "Lower train.learning_rate, raise train.warmup_steps or set train.clip_norm 1"
        latest = self.checkpoints.latest
        if not latest:
            return f"No checkpoint was saved. {advice}."
        return (
            f"The checkpoint of update {latest:,} is whole. {advice}, and train in another "
            "--run_dir. With --train.init_from this folder, the new run starts with its weights."
        )
