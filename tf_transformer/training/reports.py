"""What a training run reports: its progress, and the log of its validation intervals.

The log goes to metrics.jsonl, TensorBoard and the terminal.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
from tqdm import tqdm

from tf_transformer.data.mixture import Exposure
from tf_transformer.errors import InputError
from tf_transformer.files.aligned import table
from tf_transformer.files.reading import literal
from tf_transformer.files.writing import write_whole
from tf_transformer.machine.progress_bar import ProgressBar
from tf_transformer.run.folder import RunFolder
from tf_transformer.training.update import Updater
from tf_transformer.training.validation import Samples

FIRST, MEASURED = 20, 100  # updates: the first ones compile; the next ones tell how long all take
REFRESH = 2.0  # seconds; a GPU waits while the loss is read


class TrainingProgress:
    """Shows the number of updates, the loss, target tokens per second and the time left.

    The first updates of a start are followed by an estimate of the time that all need. The
    arguments are those of `ProgressBar`.
    """

    def __init__(
        self, steps: int, done: int, shown: bool = True, clock: Callable[[], float] = time.monotonic
    ):
        self._bar = ProgressBar("updates", steps, done, shown, clock)
        self._clock, self._shown = clock, shown
        self._unshown = 0  # updates
        self._left, self._made = steps - done, 0  # updates of this start
        self._measured = 0.0  # seconds
        self.start_interval()

    def __enter__(self) -> "TrainingProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.advance(self._unshown)
        self._bar.close()

    def start_interval(self) -> None:
        """Restarts the measurement of speed when the updater's counts start at 0 again."""
        self._tokens, self._time = 0, self._clock()
        self._last = self._time  # of the end of an update

    def end_interval(self, metrics: Mapping[str, float]) -> None:
        """Shows the metrics of an interval, even if it was too short for a refresh."""
        self._show(metrics["loss"], metrics["tokens_per_second"])

    def step(self, updater: Updater) -> bool:
        """Counts an update; whether the line is due for a refresh."""
        self._unshown += 1
        now = self._clock()
        self._estimate(updater, now)
        return now - self._time >= REFRESH

    def refresh(self, updater: Updater) -> None:
        """Reads the updater's metrics and shows them.

        Workers read metrics together, so all must call this after the same update. Their clocks
        differ: one worker decides for all.
        """
        now, tokens = self._clock(), updater.tokens_seen
        rate = (tokens - self._tokens) / (now - self._time)
        self._tokens, self._time = tokens, now
        self._show(float(updater.metrics["loss"].result()), rate)

    def _show(self, loss: float, rate: float) -> None:
        self._bar.advance(self._unshown, [f"loss {loss:.3f}", f"{rate:,.0f} tokens/s"])
        self._unshown = 0

    def _estimate(self, updater: Updater, now: float) -> None:
        """Measures the updates after the first ones, and prints how long all of them take."""
        self._made += 1
        if self._made in (FIRST, FIRST + MEASURED):
            float(updater.metrics["loss"].result())  # waits for the end
            now = self._clock()
        if FIRST < self._made <= FIRST + MEASURED:
            self._measured += now - self._last
        self._last = now
        left = self._left - self._made
        if self._made == FIRST + MEASURED and left > 0 and self._shown:
            needed = in_words(left * self._measured / MEASURED)
            tqdm.write(
                f"about {needed} left for {left:,} updates, without validations. Too "
                "long? Stop, and resume with fewer --train.steps; or train a smaller model, like "
                "--model tiny, in another --run_dir."
            )


def in_words(seconds: float) -> str:
    """A time in words, such as 17 minutes, 2.8 hours or 11.6 days."""
    minutes = max(1, round(seconds / 60))
    if minutes < 120:
        return f"{minutes} minute{'s' * (minutes > 1)}"
    hours = seconds / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"


class MetricsLog:
    """Writes the metrics of each validation interval; removes lines beyond `done` updates."""

    def __init__(self, folder: RunFolder, done: int):
        self._path = folder.metrics
        folder.logs.mkdir(parents=True, exist_ok=True)
        self._writer = tf.summary.create_file_writer(literal(folder.logs))
        if self._path.exists():
            kept = folder.load_metrics(done)
            write_whole(self._path, "".join(map(_line, kept)))

    def write(self, step: int, metrics: Mapping[str, float], samples: Samples = Samples()) -> None:
        """Writes the metrics of the interval up to update `step`, and samples to TensorBoard."""
        try:
            with self._path.open("a", encoding="utf-8") as lines:
                lines.write(_line({"step": step, **metrics}))
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written: {error}. Free disk space and give "
                "the same command again; it resumes from the last checkpoint."
            ) from error
        with self._writer.as_default(step=step):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)
            if samples.table:
                tf.summary.text("samples", samples.table)
            if samples.picture:
                tf.summary.image("attention", tf.io.decode_png(samples.picture, 3)[None])
        self._writer.flush()
        shown = (
            f"{name} {value:,.0f}" if value >= 1000 else f"{name} {value:.4g}"
            for name, value in metrics.items()
            if "/" not in name
        )
        tqdm.write(f"update {step}: {', '.join(shown)}{_of_corpora(metrics)}")


def _of_corpora(metrics: Mapping[str, float]) -> str:
    """The metrics of single corpora, whose names are like seen/a.en-de, as a table."""
    rows: dict[str, dict[str, str]] = {}
    for full_name, value in metrics.items():
        name, _, corpus = full_name.partition("/")
        if corpus:
            shown = f"{value:,.0f}" if name == "seen" else f"{value:.4g}"
            rows.setdefault(corpus, {})[name] = shown
    return table(rows)


def exposure_plan(corpora: Sequence[Exposure]) -> str:
    """How often a training run will see each of several corpora, as a table."""
    return table(
        {
            corpus.name: {
                "weight": f"{corpus.weight:.3g}",
                "pairs": f"{corpus.pairs:,}",
                "distinct": f"{corpus.distinct:,}",
                "will see": f"{corpus.seen:,.0f}",
                "per distinct pair": f"{corpus.per_pair:.1f}",
            }
            for corpus in corpora
        }
    )


def _line(row: Mapping[str, float | None]) -> str:
    """A line of JSON; NaN and infinity, which JSON does not have, become null."""
    finite = {
        name: None if value is None or not math.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"
