"""What a training shows and writes down while it runs."""

import contextlib
import json
import os
import pathlib
import time

import tensorflow as tf
from tqdm import tqdm

from tf_transformer.errors import InputError
from tf_transformer.files import write_whole
from tf_transformer.training.learner import Learner

REFRESH = 2.0  # seconds; reading the loss makes a GPU wait, so not more often
JOURNAL = "metrics.jsonl"


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
        self._tokens, self._time = 0, time.perf_counter()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()

    def start_round(self) -> None:
        """The learner's counts start at nothing again."""
        self._tokens, self._time = 0, time.perf_counter()

    def step(self, learner: Learner) -> bool:
        """Counts an update; returns whether the bar was refreshed with the learner's figures."""
        self._bar.update()
        now = time.perf_counter()
        if now - self._time < REFRESH:
            return False
        tokens = learner.tokens_seen
        rate = (tokens - self._tokens) / (now - self._time)
        self._tokens, self._time = tokens, now
        loss = float(learner.metrics["loss"].result())
        self._bar.set_postfix_str(f"{rate:,.0f} tokens/s, loss {loss:.3f}")
        return True


class Journal:
    """Writes a round's figures to metrics.jsonl, TensorBoard and the terminal.

    Args:
        run_dir: the run's folder.
        done: updates made before this start; later lines of an interrupted start are dropped.
    """

    def __init__(self, run_dir: str | os.PathLike, done: int):
        self._path = pathlib.Path(run_dir) / JOURNAL
        self._writer = tf.summary.create_file_writer(str(pathlib.Path(run_dir) / "logs"))
        if self._path.exists():
            kept = journal_up_to(run_dir, done)
            write_whole(self._path, "".join(json.dumps(row) + "\n" for row in kept))

    def write(self, step: int, figures: dict[str, float]) -> None:
        """Writes the figures of the round that ended with update number `step`."""
        try:
            with self._path.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps({"step": step} | figures) + "\n")
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written: {error}. Make room and give "
                "the same command again; it goes on from the last checkpoint."
            ) from error
        with self._writer.as_default(step=step):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        self._writer.flush()
        shown = (
            f"{name} {value:,.0f}" if value >= 1000 else f"{name} {value:.4g}"
            for name, value in figures.items()
        )
        tqdm.write(f"update {step}: {', '.join(shown)}")


def journal_up_to(run_dir: str | os.PathLike, update: int) -> list[dict[str, float]]:
    """The rounds in a run's metrics.jsonl that ended with this update or before."""
    path = pathlib.Path(run_dir) / JOURNAL
    rows = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):  # a line cut short by a kill
            rows.append(json.loads(line))
    return [row for row in rows if row["step"] <= update]
