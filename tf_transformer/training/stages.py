"""The stages of a training: each has a text, and ends after its updates or by its patience."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.config import TrainConfig
from tf_transformer.config.train import Stage
from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.mixture import Exposure, Mixture
from tf_transformer.training.early_stopping import EarlyStopping


def stages_of(train: TrainConfig) -> Sequence[Stage]:
    """The stages of a training; a training without `train.stages` is one."""
    return train.stages or (Stage(updates=train.steps),)


def longest(stage: Stage, text: BatchSampler, train: TrainConfig) -> int:
    """The updates after which a stage ends at the latest: its own, or `train.epochs` passes."""
    return stage.updates or text.updates(train.accumulate, train.epochs)


class Span(NamedTuple):
    """A part of a training in one stage."""

    text: BatchSampler
    start: int  # its first update, from 0
    end: int  # the update after its last one


class Stages(tf.Module):
    """Where a training is in its stages. Its variables are a part of checkpoints.

    Args:
        train: the options, with `stages`.
        texts: the text of each stage.
    """

    def __init__(self, train: TrainConfig, texts: Sequence[BatchSampler]):
        super().__init__()
        self._train, self._texts = train, texts
        self._stages = stages_of(train)
        # The first update of each stage that has begun; -1 for others.
        self.starts = tf.Variable([0] + [-1] * (len(texts) - 1), dtype=tf.int64, trainable=False)
        # Batches of each stage that augmentation left out, of those before `counted`.
        self.left_out = tf.Variable([0.0] * len(texts), dtype=tf.float64, trainable=False)
        self.counted = tf.Variable([0] * len(texts), dtype=tf.int64, trainable=False)

    @property
    def state(self) -> dict[str, tf.Variable]:
        """The variables that a checkpoint needs: none for one text in one stage."""
        names = ["starts", "left_out", "counted"]
        is_needed = len(self._texts) > 1 or isinstance(self._texts[0].store, Mixture)
        return {name: getattr(self, name) for name in names if is_needed}

    @property
    def number(self) -> int:
        """The number of the present stage, from 0."""
        return sum(start >= 0 for start in self.starts.numpy()) - 1

    @property
    def present(self) -> Span:
        """The present stage."""
        return self.parts()[self.number]

    def parts(self) -> list[Span]:
        """All stages. Those that come later begin where the longest ones before them end."""
        parts, end = list[Span](), 0
        for stage, text, stored in zip(
            self._stages, self._texts, self.starts.numpy().tolist(), strict=True
        ):
            start = stored if stored >= 0 else end
            end = start + longest(stage, text, self._train)
            parts.append(Span(text, start, end))
        later = [part.start for part in parts[1:]]
        return [
            part._replace(end=min(part.end, start))
            for part, start in zip(parts, [*later, end], strict=True)
        ]

    @property
    def patience(self) -> int:
        """The patience of the present stage, in scores; 0: it does not end by scores."""
        return self._stages[self.number].patience or self._train.patience

    def is_over(self, update: int, stopping: EarlyStopping) -> bool:
        """Whether the present stage ends before an update.

        Scores do not end it before a whole pass over its text.
        """
        text, start, end = self.present
        if update >= end or not stopping.should_stop(self.patience):
            return update >= end
        return update >= start + text.updates(self._train.accumulate, text.store.whole_pass)

    def next(self, update: int, stopping: EarlyStopping) -> bool:
        """Begins the next stage at an update, with new patience; false after the last stage."""
        if self.number + 1 == len(self._texts):
            return False
        self.starts[self.number + 1].assign(update)
        stopping.scores_since.assign(0)
        return True

    def count(self, update: int) -> None:
        """Counts the batches before an update of the present stage that augmentation left out."""
        (text, start, _), number = self.present, self.number
        batches = (update - start) * self._train.accumulate
        more = text.left_out(int(self.counted[number]), batches)
        self.left_out[number].assign(self.left_out[number] + more)
        self.counted[number].assign(batches)

    def exposure(self, update: int) -> list[Exposure]:
        """How often the training sees each of several corpora before an update.

        After the present update, this is an estimate.
        """
        total, left_out = dict[str, Exposure](), self.left_out.numpy().tolist()
        for (text, start, end), left in zip(self.parts(), left_out, strict=True):
            batches = max(0, min(update, end) - start) * self._train.accumulate
            for corpus in text.exposure(batches, left):
                before = total.get(corpus.name, corpus._replace(seen=0.0))
                total[corpus.name] = before._replace(seen=before.seen + corpus.seen)
        return list(total.values())
