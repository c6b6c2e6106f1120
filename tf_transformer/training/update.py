"""One update whose loss is the mean over the real tokens of all replicas and all batches."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.tasks.task import Task
from tf_transformer.text.special_ids import PAD_ID
from tf_transformer.training.metrics import TokenMean
from tf_transformer.training.optimizer import Adam

Batch = Mapping[str, tf.Tensor]  # by name, ids (B, L), int32, 0 = padding


class Updater:
    """Updates a model's weights, on every replica of a strategy.

    Keras' `fit` takes each replica's mean loss, divided by the number of replicas; with padded
    batches of unequal token counts that is not the mean over tokens. Here every replica divides
    its sum by the token count of *all* replicas and all batches of an update, and gradients are
    added up: without dropout, N replicas, or N accumulated batches, take the same step as one
    replica with one batch that is N times as big. With dropout, each draws noise of its own.

    On CPUs a replica divides the rows of a batch into micro-batches that run at the same time.
    Threads that share an operation wait for each other at its end, over a thousand times per
    update; threads with a micro-batch each meet once.

    Args:
        task: gives the losses of a batch.
        model: the model, built in the strategy's scope.
        optimizer: built for the model's trainable variables, in the same scope.
        loss: gives the losses of labels; the cross-entropy when None.
        jit_compile: compile losses and gradients with XLA, once for every shape of a batch. The
            gradients' norm and Adam are faster in TensorFlow's own operations.
        micro_batches: number of parts of a batch. Each needs memory for its own gradients. They
            pay where every operation has one thread: see `Execution.use_threads`.
        kernel_set: name of the kernels of losses and gradients; "": those in use.

    Attributes:
        update: makes an update with the next element of an iterator of groups of batches.
        validate: adds the next element's losses to the metrics.
        metrics: by name, since they were read last.
        gradient_norm: mean over the updates since it was read last.
    """

    def __init__(
        self,
        task: Task,
        model: keras.Model,
        optimizer: Adam,
        loss: CrossEntropy | None = None,
        jit_compile: bool = False,
        micro_batches: int = 1,
        kernel_set: str = "",
    ):
        self.task = task
        self.model = model
        self.optimizer = optimizer
        self.metrics = {
            "loss": TokenMean(name="loss"),
            "perplexity": TokenMean(exponential=True, name="perplexity"),
            "accuracy": TokenMean(name="accuracy"),
        }
        self.gradient_norm = keras.metrics.Mean(name="gradient_norm")
        self.micro_batches = micro_batches
        self.loss = loss or CrossEntropy()
        self._jit_compile = jit_compile
        options = {"reduce_retracing": True, "jit_compile": jit_compile, "autograph": False}
        chosen = kernels.use(kernels.SETS[kernel_set] if kernel_set else kernels.current())
        self._differentiate = tf.function(chosen(self._losses_and_gradients), **options)
        self._measure = tf.function(chosen(self._losses), **options)
        self.update = self._on_every_replica(self._update)
        self.validate = self._on_every_replica(self._validate)

    @property
    def updates(self) -> int:
        """Updates made."""
        return int(self.optimizer.iterations.numpy())  # int() alone fails on two replicas

    @property
    def next_batch(self) -> int:
        """Updates tried, with skipped ones: the number of the batch that is next."""
        return self.updates + int(self.optimizer.skipped.numpy())

    @property
    def tokens_seen(self) -> int:
        """Target tokens since the metrics were read last."""
        return int(self.metrics["loss"].tokens.numpy())

    def read_metrics(self) -> dict[str, float]:
        """The metrics by name, NaN when no update counts; resets them."""
        values = {
            name: float(metric.result()) if metric.tokens.numpy() else math.nan
            for name, metric in self.metrics.items()
        }
        for metric in self.metrics.values():
            metric.reset_state()
        return values

    def read_gradient_norm(self) -> float:
        """The mean norm of gradients before clipping, NaN when no update counts; resets it."""
        mean = self.gradient_norm
        value = float(mean.result()) if mean.count.numpy() else math.nan
        mean.reset_state()
        return value

    def _on_every_replica(self, step: Callable[..., None]) -> Callable[[Any], None]:
        """A function that runs `step` on every replica's part of an iterator's next element."""
        strategy = tf.distribute.get_strategy()

        @tf.function(reduce_retracing=True, autograph=False)
        def run(iterator: Any) -> None:
            strategy.run(step, args=(iterator.get_next(),))

        return run

    def _update(self, batches: Sequence[Batch]) -> None:
        replica = tf.distribute.get_replica_context()
        tokens = tf.add_n([_token_count(batch[self.task.labels]) for batch in batches])
        tokens = replica.all_reduce(tf.distribute.ReduceOp.SUM, tokens)
        scale = self.optimizer.loss_scale.value / tf.maximum(tokens, 1.0)
        gradients = self._gradients(batches[0], scale)
        for batch in batches[1:]:
            with tf.control_dependencies(gradients):  # one batch's activations at a time
                more = self._gradients(batch, scale)
            gradients = [total + each for total, each in zip(gradients, more, strict=True)]
        norm = self.optimizer.apply(gradients, self.model.trainable_variables)
        finite = tf.math.is_finite(norm)  # others are skipped
        self.gradient_norm.update_state(tf.where(finite, norm, 0.0), tf.cast(finite, norm.dtype))

    def _gradients(self, batch: Batch, scale: tf.Tensor) -> list[tf.Tensor]:
        """Dense gradients of scale · summed loss, by trainable variable; adds to the metrics."""
        results = [self._differentiate(part, scale) for part in self._divide(batch)]
        for losses, _ in results:
            self._add_to_metrics(_if_finite(losses))
        return [tf.add_n(parts) for parts in zip(*(g for _, g in results), strict=True)]

    def _validate(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for losses in [self._measure(part) for part in self._divide(batch)]:
                self._add_to_metrics(losses)

    def _divide(self, batch: Batch) -> list[Batch]:
        """The micro-batches: number n of N has rows n, n + N, n + 2N, …."""
        count = self.micro_batches
        if self._jit_compile and count > 1:  # equal shapes, so that XLA compiles one function
            batch = {name: _pad_rows(ids, count) for name, ids in batch.items()}
        return [{name: ids[n::count] for name, ids in batch.items()} for n in range(count)]

    def _losses_and_gradients(
        self, batch: Batch, scale: tf.Tensor
    ) -> tuple[TokenLosses, list[tf.Tensor]]:
        """Leaves the metrics alone: else the next micro-batch would wait for this one's losses."""
        variables = [variable.value for variable in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            losses = self._losses(batch, training=True)
            loss = losses.loss * scale
        return losses, list(map(tf.convert_to_tensor, tape.gradient(loss, variables)))

    def _losses(self, batch: Batch, training: bool = False) -> TokenLosses:
        return self.task.losses(self.model, batch, self.loss, training)

    def _add_to_metrics(self, losses: TokenLosses) -> None:
        self.metrics["loss"].update_state(losses.loss, losses.tokens)
        self.metrics["perplexity"].update_state(losses.nll, losses.tokens)
        self.metrics["accuracy"].update_state(losses.correct, losses.tokens)


def _if_finite(losses: TokenLosses) -> TokenLosses:
    """Zeros instead of losses that are not finite: the optimizer skips and counts that update."""
    finite = tf.math.is_finite(losses.loss)
    return TokenLosses(*(tf.where(finite, total, 0.0) for total in losses))


def _pad_rows(ids: tf.Tensor, count: int) -> tf.Tensor:
    """Ids with rows of padding up to a multiple of `count`."""
    return tf.pad(ids, [[0, -tf.shape(ids)[0] % count], [0, 0]])


def _token_count(labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(tf.not_equal(labels, PAD_ID), tf.float32))


def make_optimizer(
    model: keras.Model,
    schedule: keras.optimizers.schedules.LearningRateSchedule | float,
    **options: Any,
) -> Adam:
    """Adam as section 5.3 sets it, built for a model; call in the strategy's scope."""
    optimizer = Adam(schedule, **options)
    optimizer.build(model.trainable_variables)
    return optimizer
