"""What `fit` runs: one update whose loss is the mean over all replicas' real tokens."""

from collections.abc import Callable

import keras
import tensorflow as tf

from tf_transformer.layers import PAD_ID
from tf_transformer.model import Transformer
from tf_transformer.tokenizer import BOS_ID
from tf_transformer.training.loss import TokenLosses, token_losses
from tf_transformer.training.metrics import TokenMean


def shift_right(labels: tf.Tensor) -> tf.Tensor:
    """The decoder's input for these labels: start id first, last id gone (paper section 3.1)."""
    return tf.pad(labels[:, :-1], [[0, 0], [1, 0]], constant_values=BOS_ID)


class TrainingModel(keras.Model):
    """A Transformer with its loss and metrics, for `fit` on (source, labels) batches.

    Keras' own train step takes each replica's mean loss, divided by the number of replicas;
    with padded batches of unequal token counts that is not the mean over tokens. Here each
    replica divides its sum by the *global* token count, and the optimizer's sum over replicas
    does the rest: N replicas take the same step as one.

    Args:
        transformer: the model to train, built.
        label_smoothing: ε of section 5.4.
        jit: compile the update with XLA.
    """

    def __init__(self, transformer: Transformer, label_smoothing: float, jit: bool = False):
        super().__init__(name="training_model")
        self.transformer = transformer
        self.label_smoothing = label_smoothing
        self.jit = jit
        self.token_metrics = {
            "loss": TokenMean(name="loss"),
            "perplexity": TokenMean(exponential=True, name="perplexity"),
            "accuracy": TokenMean(name="accuracy"),
        }
        self.built = True
        self.train_function: Callable | None = None
        self.test_function: Callable | None = None

    def call(self, inputs, training=None):
        return self.transformer(inputs, training=training)

    @property
    def metrics(self):
        return list(self.token_metrics.values())

    @property
    def tokens_seen(self) -> int:
        """Target tokens since the metrics were reset."""
        return int(self.token_metrics["loss"].tokens.numpy())

    @property
    def updates(self) -> int:
        """Updates made, those before an interruption included."""
        return int(self.optimizer.iterations.numpy())

    def _token_losses(self, batch, training: bool) -> TokenLosses:
        source, labels = batch
        logits = self((source, shift_right(labels)), training=training)
        return token_losses(labels, logits, self.label_smoothing, PAD_ID)

    def _update_metrics(self, losses: TokenLosses) -> None:
        self.token_metrics["loss"].update_state(losses.loss, losses.tokens)
        self.token_metrics["perplexity"].update_state(losses.nll, losses.tokens)
        self.token_metrics["accuracy"].update_state(losses.correct, losses.tokens)

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            losses = self._token_losses(batch, training=True)
            replica = tf.distribute.get_replica_context()
            global_tokens = replica.all_reduce(tf.distribute.ReduceOp.SUM, losses.tokens)
            loss = losses.loss / tf.maximum(global_tokens, 1.0)
        variables = self.transformer.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        self.optimizer.apply(gradients, variables)
        self._update_metrics(losses)

    def test_step(self, batch):
        self._update_metrics(self._token_losses(batch, training=False))

    def _distributed(self, step):
        """A function from a distributed iterator to the metrics, running `step` on all replicas.

        Owned here because Keras' own reduces metric results over replicas a second time, which
        fails for scalars under some strategies (keras#20585).
        """
        if self.jit:
            step = tf.function(step, jit_compile=True, reduce_retracing=False)

        @tf.function(reduce_retracing=True)
        def run(iterator):
            self.distribute_strategy.run(step, args=(next(iterator),))

        def run_and_report(iterator):
            run(iterator)
            return {name: metric.result() for name, metric in self.token_metrics.items()}

        return run_and_report

    def make_train_function(self, force: bool = False) -> None:
        if self.train_function is None or force:
            self.train_function = self._distributed(self.train_step)

    def make_test_function(self, force: bool = False) -> None:
        if self.test_function is None or force:
            self.test_function = self._distributed(self.test_step)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Nothing to do: the Transformer is built, in scope, before `fit`.

        Keras' own pulls a batch and fails when replicas hold batches of different shapes.
        """
