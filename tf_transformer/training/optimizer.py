"""Adam (paper section 5.3) over all replicas: add up gradients, clip them, update weights."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

LARGEST_LOSS_SCALE = 2.0**15
GROW_LOSS_SCALE_AFTER = 2000  # finite updates in a row


class Adam(keras.optimizers.Optimizer):
    """Adam with the paper's constants, for gradients that are summed over replicas.

    Keras' Adam clips each replica's gradients before it adds them up, and checks the loss scale
    on one replica. This optimizer adds up the gradients first, and their norm decides for all
    replicas.

    If a gradient is not finite, the update is skipped: weights, moments and schedule keep their
    values, and `skipped` counts the update.

    One fused operation updates a variable. Keras uses about a dozen elementary operations, which
    read and write each parameter three times as often.

    Args:
        schedule: learning rate as a function of the number of updates, or a constant.
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of squared gradients.
        epsilon: constant in the denominator; keeps the division finite.
        clip_norm: largest norm of all gradients together; larger gradients are scaled down.
            0: no limit.
        average_decay: decay of an exponential moving average of the weights; 0: no average.
        scale_loss: whether the loss is scaled, for float16. The scale halves when gradients
            overflow, and doubles after 2,000 updates without an overflow.

    Example:
        >>> weight = keras.Variable([1.0, 2.0])
        >>> optimizer = Adam(0.1)
        >>> optimizer.build([weight])
        >>> norm = optimizer.apply([tf.constant([1.0, float("nan")])], [weight])
        >>> int(optimizer.iterations), int(optimizer.skipped)
        (0, 1)
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule | float,
        beta_1: float = 0.9,
        beta_2: float = 0.98,
        epsilon: float = 1e-9,
        clip_norm: float = 0.0,
        average_decay: float = 0.0,
        scale_loss: bool = False,
        name: str = "adam",
    ):
        super().__init__(schedule, name=name)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.clip_norm = clip_norm
        self.average_decay = average_decay
        self.scale_loss_dynamically = scale_loss

    def build(self, variables: list[keras.Variable]) -> None:
        super().build(variables)
        self.moments, self.squares = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        self.averages = []
        if self.average_decay:
            self.averages = self.add_optimizer_variables(variables, "average")
        self.skipped = self._number("skipped", "int64")
        self.skipped_in_a_row = self._number("skipped_in_a_row", "int64")
        self.finite_in_a_row = self._number("finite_in_a_row", "int64")
        initial = LARGEST_LOSS_SCALE if self.scale_loss_dynamically else 1.0
        self.loss_scale = self._number("loss_scale", "float32", initial)

    def _number(self, name: str, dtype: str, value: float = 0) -> keras.Variable:
        start = keras.initializers.Constant(value)
        return self.add_variable((), start, dtype, aggregation="only_first_replica", name=name)

    def apply(self, gradients: list[tf.Tensor], variables: list[keras.Variable]) -> tf.Tensor:
        """Makes one update; each replica calls it with its own gradients.

        Args:
            gradients: for each variable, the gradient of this replica's part of the scaled loss.
            variables: the variables that the optimizer was built with, in the same order.

        Returns:
            float32 scalar, the norm of the gradients of all replicas, without the loss scale and
            before clipping.
        """
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, list(gradients))
        norm = tf.linalg.global_norm(gradients) / self.loss_scale.value
        factor = 1.0 / self.loss_scale.value
        if self.clip_norm:
            factor *= tf.minimum(1.0, self.clip_norm / tf.maximum(norm, self.clip_norm))
        if self.clip_norm or self.scale_loss_dynamically:
            gradients = [gradient * factor for gradient in gradients]
        finite = tf.math.is_finite(norm)
        skipped = tf.logical_not(finite)

        update = functools.partial(self._update_all, variables)
        replica.merge_call(update, args=(gradients, finite, skipped))
        return norm

    def _update_all(
        self,
        weights: list[keras.Variable],
        strategy: tf.distribute.Strategy,
        gradients: list[tf.Tensor],
        finite: tf.Tensor,
        skipped: tf.Tensor,
    ) -> None:
        """Updates the weights, their averages and the counters, on each device."""

        def update(function: Callable[..., None], variable: keras.Variable, *others: Any) -> None:
            tensors = [x.value if isinstance(x, keras.Variable) else x for x in others]
            strategy.extended.update(variable.value, function, args=(*tensors,), group=False)

        updates, rate = self.iterations.value, self.learning_rate
        with_all = zip(weights, self.moments, self.squares, gradients, strict=True)
        for weight, moment, square, gradient in with_all:
            update(self._update_weight, weight, moment, square, gradient, finite, rate, updates)
        for average, weight in zip(self.averages, weights, strict=False):
            update(self._update_average, average, weight, finite, updates)
        if self.scale_loss_dynamically:
            update(_update_loss_scale, self.loss_scale, self.finite_in_a_row, finite)
            update(_count_in_a_row, self.finite_in_a_row, finite)
        update(_count, self.iterations, finite)
        update(_count, self.skipped, skipped)
        update(_count_in_a_row, self.skipped_in_a_row, skipped)

    def _update_weight(
        self,
        weight: tf.Variable,
        moment: tf.Tensor,
        square: tf.Tensor,
        gradient: tf.Tensor,
        finite: tf.Tensor,
        rate: tf.Tensor,
        updates: tf.Tensor,
    ) -> None:
        step = tf.cast(updates + 1, weight.dtype)

        def adam() -> bool:
            tf.raw_ops.ResourceApplyAdam(
                var=weight.handle,
                m=moment.handle,
                v=square.handle,
                beta1_power=self.beta_1**step,
                beta2_power=self.beta_2**step,
                lr=tf.cast(rate, weight.dtype),
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=gradient,
            )
            return True

        tf.cond(finite, adam, lambda: False)

    def _update_average(
        self, average: tf.Variable, weight: tf.Tensor, finite: tf.Tensor, updates: tf.Tensor
    ) -> None:
        """Average ← d · average + (1 - d) · weight; d rises from 0, so that the start fades."""
        made = tf.cast(updates, average.dtype)
        decay = tf.minimum(self.average_decay, made / (made + 9.0))
        rate = tf.where(finite, 1.0 - decay, 0.0)
        average.assign_add(rate * (weight - average))


def _count(counter: tf.Variable, happened: tf.Tensor) -> None:
    counter.assign_add(tf.cast(happened, counter.dtype))


def _count_in_a_row(counter: tf.Variable, happened: tf.Tensor) -> None:
    counter.assign((counter + 1) * tf.cast(happened, counter.dtype))


def _update_loss_scale(scale: tf.Variable, finite_in_a_row: tf.Tensor, finite: tf.Tensor) -> None:
    due = tf.equal((finite_in_a_row + 1) % GROW_LOSS_SCALE_AFTER, 0)
    larger = tf.minimum(tf.where(due, 2.0, 1.0) * scale, LARGEST_LOSS_SCALE)
    scale.assign(tf.where(finite, larger, tf.maximum(scale / 2.0, 1.0)))
