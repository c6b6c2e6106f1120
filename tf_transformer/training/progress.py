"""The progress of a training: loss and target tokens per second."""

import time
from collections.abc import Callable, Mapping

from tf_transformer.machine.progress_bar import ProgressBar
from tf_transformer.training.update import Updater

REFRESH = 2.0  # seconds; a GPU waits while the loss is read


class TrainingProgress:
    """Shows the number of updates, the loss, target tokens per second and the time left.

    Args:
        steps: number of updates in the whole training.
        done: number of updates made before this start.
        shown: whether the progress is shown.
        clock: function that returns the time in seconds.
    """

    def __init__(
        self,
        steps: int,
        done: int,
        shown: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._bar = ProgressBar("updates", steps, done, shown, clock)
        self._clock = clock
        self._unshown = 0  # updates
        self.start_interval()

    def __enter__(self) -> "TrainingProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.advance(self._unshown)
        self._bar.close()

    def start_interval(self) -> None:
        """Restarts the measurement of speed when the updater's counts start at 0 again."""
        self._tokens, self._time = 0, self._clock()

    def end_interval(self, metrics: Mapping[str, float]) -> None:
        """Shows the metrics of an interval, even if it was too short for a refresh."""
        self._show(metrics["loss"], metrics["tokens_per_second"])

    def step(self, updater: Updater) -> bool:
        """Counts an update.

        Returns:
            whether the line was refreshed, which reads the updater's metrics.
        """
        self._unshown += 1
        now = self._clock()
        if now - self._time < REFRESH:
            return False
        tokens = updater.tokens_seen
        rate = (tokens - self._tokens) / (now - self._time)
        self._tokens, self._time = tokens, now
        self._show(float(updater.metrics["loss"].result()), rate)
        return True

    def _show(self, loss: float, rate: float) -> None:
        self._bar.advance(self._unshown, [f"loss {loss:.3f}", f"{rate:,.0f} tokens/s"])
        self._unshown = 0
