"""The log of validation intervals: metrics.jsonl, TensorBoard and the terminal."""

import json
import math
from collections.abc import Mapping

import tensorflow as tf
from tqdm import tqdm

from tf_transformer.errors import InputError
from tf_transformer.files.reading import literal
from tf_transformer.files.writing import write_whole
from tf_transformer.run.folder import RunFolder
from tf_transformer.training.validation import Samples


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
        )
        tqdm.write(f"update {step}: {', '.join(shown)}")


def _line(row: Mapping[str, float | None]) -> str:
    """A line of JSON; NaN and infinity, which JSON does not have, become null."""
    finite = {
        name: None if value is None or not math.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"
