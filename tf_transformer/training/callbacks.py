"""What a training shows and keeps while it runs."""

import json
import os
import pathlib
import time
from collections.abc import Callable

import keras
import tensorflow as tf
from tqdm import tqdm

from tf_transformer.tasks.translation import Score
from tf_transformer.training.checkpoint import Checkpoints
from tf_transformer.training.training_model import TrainingModel


class Progress(keras.callbacks.Callback):
    """A bar over all updates with loss, target tokens per second and time left.

    Also stops the training after `steps` updates, wherever in a round that is.

    Args:
        steps: updates in the whole training.
        done: updates made before this start.
    """

    def __init__(self, steps: int, done: int):
        super().__init__()
        self._steps = steps
        self._done = done
        self.model: TrainingModel

    def on_train_begin(self, logs=None):
        self._bar = tqdm(
            total=self._steps, initial=self._done, unit="update", dynamic_ncols=True, mininterval=1
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._tokens, self._time = 0, time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self._bar.update()
        if self._bar.n >= self._steps:
            self.model.stop_training = True
        now = time.perf_counter()
        if now - self._time >= 2:
            tokens = self.model.tokens_seen
            rate = (tokens - self._tokens) / (now - self._time)
            self._tokens, self._time = tokens, now
            self._bar.set_postfix_str(f"{rate:,.0f} tokens/s, loss {float(logs['loss']):.3f}")

    def on_train_end(self, logs=None):
        self._bar.close()


class ValidationScore(keras.callbacks.Callback):
    """Adds the scores of translated validation sentences to a round's figures.

    Args:
        score: function without arguments that translates and scores.
    """

    def __init__(self, score: Callable[[], Score]):
        super().__init__()
        self._score = score

    def on_epoch_end(self, epoch, logs=None):
        score = self._score()
        logs |= {"val_bleu": score.bleu, "val_exact_match": score.exact_match}


class Journal(keras.callbacks.Callback):
    """Writes a round's figures to metrics.jsonl, TensorBoard and the terminal.

    Args:
        run_dir: the run's folder.
        done: updates made before this start; later lines of an interrupted start are dropped.
    """

    def __init__(self, run_dir: str | os.PathLike, done: int):
        super().__init__()
        self._path = pathlib.Path(run_dir) / "metrics.jsonl"
        self._writer = tf.summary.create_file_writer(str(pathlib.Path(run_dir) / "logs"))
        self._drop_after(done)
        self.model: TrainingModel

    def _drop_after(self, done: int) -> None:
        if self._path.exists():
            lines = self._path.read_text("utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["step"] <= done]
            self._path.write_text("".join(line + "\n" for line in kept), "utf-8")

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()
        self._train_seconds = 0.0
        self._tokens = 0

    def on_train_batch_end(self, batch, logs=None):
        self._train_seconds = time.perf_counter() - self._start

    def on_test_begin(self, logs=None):
        self._tokens = self.model.tokens_seen

    def on_epoch_end(self, epoch, logs=None):
        step = self.model.updates
        rates = {
            "learning_rate": keras.ops.convert_to_numpy(self.model.optimizer.learning_rate),
            "tokens_per_second": round(self._tokens / self._train_seconds),
        }
        figures = {name: float(value) for name, value in (logs | rates).items()}
        with self._path.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"step": step} | figures) + "\n")
        with self._writer.as_default(step=step):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        self._writer.flush()
        shown = (
            f"{name} {value:,.0f}" if value >= 1000 else f"{name} {value:.4g}"
            for name, value in figures.items()
        )
        tqdm.write(f"update {step}: {', '.join(shown)}")


class SaveCheckpoint(keras.callbacks.Callback):
    """Saves a checkpoint after every round."""

    def __init__(self, checkpoints: Checkpoints):
        super().__init__()
        self._checkpoints = checkpoints

    def on_epoch_end(self, epoch, logs=None):
        self._checkpoints.save()
