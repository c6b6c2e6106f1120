"""An update whose loss is the mean over the real tokens of all replicas and all batches."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses
from tf_transformer.tasks.task import Task
from tf_transformer.text.special_ids import PAD_ID
from tf_transformer.training.metrics import TokenMean
from tf_transformer.training.optimizer import Adam

Batch = Mapping[str, tf.Tensor]  # by name, ids (B, L), int32, 0 = padding


class Updater:
    """Updates the weights of a model, on each replica of a strategy.

    Keras' `fit` divides each replica's mean loss by the number of replicas. For padded batches with
    unequal token counts, the result differs from the mean over tokens. Here each replica divides
    its summed loss by the token count of *all* replicas and all batches of an update. The
    gradients are added up. Without dropout, N replicas or N accumulated batches thus have the
    effect of one replica with one batch that is N times as large. With dropout, each replica and
    each batch draws its own noise.

    On CPUs a replica divides the rows of a batch into micro-batches that run in parallel. Threads
    that share an operation wait for each other at its end, over 1,000 times per update. Threads
    that each have a micro-batch wait once.

    Args:
        task: the task, which computes the losses of a batch.
        model: the model, built in the strategy's scope.
        optimizer: the optimizer, built for the model's trainable variables in the same scope.
        loss: the loss of labels; None: the cross-entropy.
        jit_compile: compile losses and gradients with XLA, once for each shape of a batch. The
            norm of the gradients and Adam remain in TensorFlow's operations, which are faster.
        micro_batches: number of parts of a batch. Each part needs memory for its gradients. The
            parts pay off if each operation has one thread: see `Execution.use_threads`.
        kernel_set: name of the set of kernels for losses and gradients; "": the set in use.

    Attributes:
        update: function of an iterator over groups of batches; makes an update with the next
            group.
        validate: function of such an iterator; adds the losses of the next group to the metrics.
        metrics: metrics by name, since their last read.
        gradient_norm: mean norm of the gradients, since its last read.
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
        """Number of updates made."""
        return int(self.optimizer.iterations.numpy())  # int() alone fails on two replicas

    @property
    def next_batch(self) -> int:
        """Number of the next batch: updates made and updates skipped."""
        return self.updates + int(self.optimizer.skipped.numpy())

    @property
    def tokens_seen(self) -> int:
        """Number of target tokens since the last read of the metrics."""
        return int(self.metrics["loss"].tokens.numpy())

    @property
    def loss_so_far(self) -> tuple[float, float]:
        """Sum of the losses, and number of target tokens, since the last read of the metrics."""
        loss = self.metrics["loss"]
        return float(loss.total.numpy()), float(loss.tokens.numpy())

    def read_metrics(self) -> dict[str, float]:
        """Reads and resets the metrics, by name; NaN if no update counts."""
        values = {
            name: float(metric.result()) if metric.tokens.numpy() else math.nan
            for name, metric in self.metrics.items()
        }
        for metric in self.metrics.values():
            metric.reset_state()
        return values

    def read_gradient_norm(self) -> float:
        """Reads and resets the mean norm of gradients before clipping; NaN if no update counts."""
        mean = self.gradient_norm
        value = float(mean.result()) if mean.count.numpy() else math.nan
        mean.reset_state()
        return value

    def _on_every_replica(self, step: Callable[..., None]) -> Callable[[Any], None]:
        """A function that runs `step` on each replica's part of the next element of an iterator."""
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
            with tf.control_dependencies(gradients):  # memory holds the activations of one batch
                more = self._gradients(batch, scale)
            gradients = [total + gradient for total, gradient in zip(gradients, more, strict=True)]
        norm = self.optimizer.apply(gradients, self.model.trainable_variables)
        finite = tf.math.is_finite(norm)  # else the optimizer skips the update
        self.gradient_norm.update_state(tf.where(finite, norm, 0.0), tf.cast(finite, norm.dtype))

    def _gradients(self, batch: Batch, scale: tf.Tensor) -> list[tf.Tensor]:
        """Dense gradients of scale · summed loss, one per trainable variable; adds to metrics."""
        results = [self._differentiate(part, scale) for part in self._divide(batch)]
        for losses, _ in results:
            self._add_to_metrics(_if_finite(losses))
        return [tf.add_n(parts) for parts in zip(*(g for _, g in results), strict=True)]

    def _validate(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for losses in [self._measure(part) for part in self._divide(batch)]:
                self._add_to_metrics(losses)

    def _divide(self, batch: Batch) -> list[Batch]:
        """The micro-batches: micro-batch n of N has rows n, n + N, n + 2N, …."""
        count = self.micro_batches
        if self._jit_compile and count > 1:  # equal shapes, so that XLA compiles one function
            batch = {
                name: tf.pad(ids, [[0, -tf.shape(ids)[0] % count], [0, 0]])
                for name, ids in batch.items()
            }
        return [{name: ids[n::count] for name, ids in batch.items()} for n in range(count)]

    def _losses_and_gradients(
        self, batch: Batch, scale: tf.Tensor
    ) -> tuple[TokenLosses, list[tf.Tensor]]:
        """The losses and gradients of a micro-batch.

        Does not update the metrics, because the next micro-batch would wait for these losses.
        """
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
    """The losses, or zeros if they are not finite: the optimizer skips and counts this update."""
    finite = tf.math.is_finite(losses.loss)
    return TokenLosses(*(tf.where(finite, total, 0.0) for total in losses))


def _token_count(labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(tf.not_equal(labels, PAD_ID), tf.float32))


def make_optimizer(
    model: keras.Model,
    schedule: keras.optimizers.schedules.LearningRateSchedule | float,
    **options: Any,
) -> Adam:
    """`Adam` as in section 5.3, built for a built model. Call it in the strategy's scope."""
    optimizer = Adam(schedule, **options)
    optimizer.build(model.trainable_variables)
    return optimizer
