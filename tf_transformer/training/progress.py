"""The progress bar of a training."""

import time

from tqdm import tqdm

from tf_transformer.training.update import Updater

REFRESH = 2.0  # seconds; reading the loss makes a GPU wait, so not more often


class ProgressBar:
    """A bar over all updates with loss, target tokens per second and time left.

    Args:
        steps: updates in the whole training.
        done: updates made before this start.
        shown: whether there is a bar at all.
    """

    def __init__(self, steps: int, done: int, shown: bool = True):
        self._bar = tqdm(
            total=steps,
            initial=done,
            unit="update",
            dynamic_ncols=True,
            mininterval=1,
            disable=not shown,
        )
        self.start_interval()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()

    def start_interval(self) -> None:
        """Restarts the measurement of speed; the updater's counts start at 0 again."""
        self._tokens, self._time = 0, time.perf_counter()

    def step(self, updater: Updater) -> bool:
        """Counts an update; returns whether the bar was refreshed with the updater's metrics."""
        self._bar.update()
        now = time.perf_counter()
        if now - self._time < REFRESH:
            return False
        tokens = updater.tokens_seen
        rate = (tokens - self._tokens) / (now - self._time)
        self._tokens, self._time = tokens, now
        loss = float(updater.metrics["loss"].result())
        self._bar.set_postfix_str(f"{rate:,.0f} tokens/s, loss {loss:.3f}")
        return True
