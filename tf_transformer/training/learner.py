"""One update whose loss is the mean over the real tokens of all replicas and all batches."""

from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from tf_transformer.models.transformer import Transformer
from tf_transformer.sequences import shift_right
from tf_transformer.special_ids import PAD_ID
from tf_transformer.training.loss import TokenLosses, token_losses
from tf_transformer.training.metrics import TokenMean
from tf_transformer.training.optimizer import Adam

Batch = tuple[tf.Tensor, tf.Tensor]  # source (B, S) and labels (B, T), int32, 0 = padding


class Learner:
    """A Transformer that learns, on every replica of a strategy.

    Keras' `fit` takes each replica's mean loss, divided by the number of replicas; with padded
    batches of unequal token counts that is not the mean over tokens. Here every replica divides
    its sum by the token count of *all* replicas and all batches of an update, and gradients are
    added up: N replicas, or N batches accumulated, take the same step as one replica with one
    batch N times as big.

    On a processor one replica works on several shares of a batch at the same time. Threads that
    divide an operation wait for each other at its end, over a thousand times an update; threads
    with a share each meet once.

    Args:
        transformer: the model, built in the strategy's scope.
        optimizer: built for the model's trainable variables, in the same scope.
        label_smoothing: ε of section 5.4.
        jit_compile: compile losses and gradients with XLA, once for every shape that comes. Not
            the gradients' norm and Adam: TensorFlow's own operations take less time for them.
        shares: into how many a replica divides the rows of a batch. Each has gradients of
            its own in memory. They pay where every operation has one thread: see
            `strategy.use_threads`.
    """

    def __init__(
        self,
        transformer: Transformer,
        optimizer: Adam,
        label_smoothing: float = 0.0,
        jit_compile: bool = False,
        shares: int = 1,
    ):
        self.transformer = transformer
        self.optimizer = optimizer
        self.metrics = {
            "loss": TokenMean(name="loss"),
            "perplexity": TokenMean(exponential=True, name="perplexity"),
            "accuracy": TokenMean(name="accuracy"),
        }
        self._label_smoothing = label_smoothing
        self.shares = shares
        options = {"reduce_retracing": True, "jit_compile": jit_compile}
        self._differentiate = tf.function(self._losses_and_gradients, **options)
        self._measure = tf.function(self._losses, **options)
        self.update = self._on_every_replica(self._update)
        self.validate = self._on_every_replica(self._validate)

    @property
    def updates(self) -> int:
        """Updates made."""
        return int(self.optimizer.iterations.numpy())  # int() alone fails on two replicas

    @property
    def position(self) -> int:
        """Updates tried, those passed over included: how far in the data the learner is."""
        return self.updates + int(self.optimizer.skipped.numpy())

    @property
    def tokens_seen(self) -> int:
        """Target tokens since the metrics were reset."""
        return int(self.metrics["loss"].tokens.numpy())

    def figures(self) -> dict[str, float]:
        """The metrics since they were reset, by name; resets them."""
        figures = {name: float(metric.result()) for name, metric in self.metrics.items()}
        for metric in self.metrics.values():
            metric.reset_state()
        return figures

    def _on_every_replica(self, step):
        """A function of an iterator that runs `step` on every replica's share of what comes."""
        strategy = tf.distribute.get_strategy()

        @tf.function(reduce_retracing=True)
        def run(iterator: Iterator) -> None:
            strategy.run(step, args=(next(iterator),))

        return run

    def _update(self, batches: Sequence[Batch]) -> None:
        replica = tf.distribute.get_replica_context()
        tokens = tf.add_n([_token_count(labels) for _, labels in batches])
        tokens = replica.all_reduce(tf.distribute.ReduceOp.SUM, tokens)
        scale = self.optimizer.loss_scale.value / tf.maximum(tokens, 1.0)
        gradients = self._gradients(batches[0], scale)
        for batch in batches[1:]:
            with tf.control_dependencies(gradients):  # one batch's activations at a time
                more = self._gradients(batch, scale)
            gradients = [sum_ + one for sum_, one in zip(gradients, more, strict=True)]
        self.optimizer.apply(gradients, self.transformer.trainable_variables)

    def _gradients(self, batch: Batch, scale: tf.Tensor) -> list[tf.Tensor]:
        """Gradients of scale · summed loss, dense, one a trainable variable; counts the losses."""
        shares = [self._differentiate(share, scale) for share in self._shares_of(batch)]
        for losses, _ in shares:
            self._count(losses)
        return [tf.add_n(of_one) for of_one in zip(*(g for _, g in shares), strict=True)]

    def _validate(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for losses in [self._measure(share) for share in self._shares_of(batch)]:
                self._count(losses)

    def _shares_of(self, batch: Batch) -> list[Batch]:
        """Rows go round like cards, as they do among replicas."""
        source, labels = batch
        every = self.shares
        return [(source[first::every], labels[first::every]) for first in range(every)]

    def _losses_and_gradients(
        self, batch: Batch, scale: tf.Tensor
    ) -> tuple[TokenLosses, list[tf.Tensor]]:
        """Counts nothing: the next share would wait for that, and so for this one's losses."""
        variables = [variable.value for variable in self.transformer.trainable_variables]
        with tf.GradientTape() as tape:
            losses = self._losses(batch, training=True)
            loss = losses.loss * scale
        return losses, list(map(tf.convert_to_tensor, tape.gradient(loss, variables)))

    def _losses(self, batch: Batch, training: bool = False) -> TokenLosses:
        source, labels = batch
        states = self.transformer.run((source, shift_right(labels)), training=training).states
        embeddings = self.transformer.output_embedding.embeddings
        return token_losses(labels, states, embeddings, self._label_smoothing, PAD_ID)

    def _count(self, losses: TokenLosses) -> None:
        self.metrics["loss"].update_state(losses.loss, losses.tokens)
        self.metrics["perplexity"].update_state(losses.nll, losses.tokens)
        self.metrics["accuracy"].update_state(losses.correct, losses.tokens)


def _token_count(labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(tf.not_equal(labels, PAD_ID), tf.float32))


def make_optimizer(
    transformer: Transformer,
    schedule: keras.optimizers.schedules.LearningRateSchedule | float,
    **options,
) -> Adam:
    """Adam as section 5.3 sets it, built for a model; call in the strategy's scope."""
    optimizer = Adam(schedule, **options)
    optimizer.build(transformer.trainable_variables)
    return optimizer
