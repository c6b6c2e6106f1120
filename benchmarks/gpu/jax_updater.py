"""This project's Transformer on Keras' JAX backend: jitted updates by Keras' Adam."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.workload import (
    BATCHES,
    BETAS,
    DROPOUT,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Cell,
    batches,
    tokens_of,
)
from tf_transformer import kernels
from tf_transformer.config import ModelConfig
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.sequences import shift_right

State = tuple[Any, Any, Any]  # trainable variables, other variables, variables of the optimizer


def task(setting: Setting, cell: Cell) -> Task:
    """Trains the model of this shape."""
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    vocabulary_size = sizes.pop("vocabulary_size")
    config = ModelConfig(**sizes, dropout_rate=DROPOUT)
    model = Transformer(vocabulary_size, config, dtype=cell.policy)
    model.build()
    beta_1, beta_2 = BETAS
    optimizer = keras.optimizers.Adam(LEARNING_RATE, beta_1, beta_2, EPSILON)
    optimizer.build(model.trainable_variables)
    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    state = [tuple([variable.value for variable in group] for group in variables)]
    update = jax.jit(functools.partial(_update, model, optimizer), donate_argnums=0)
    made = batches(setting.shape, cell)
    data = [(jnp.asarray(batch.source), jnp.asarray(batch.labels)) for batch in made]

    def run() -> float:
        losses = []
        for batch in data:
            state[0], loss = update(state[0], *batch)
            losses.append(loss)
        return float(np.mean(losses))

    return Task(tokens_of(made), run, float, BATCHES, model.count_params())


def _update(model, optimizer, state: State, source, target) -> tuple[State, Any]:
    """The state after an update, and the loss."""
    weights, others, moments = state
    smoothed = CrossEntropy(LABEL_SMOOTHING)

    def loss_of(weights):
        values = [*zip(model.trainable_variables, weights, strict=True)]
        values += zip(model.non_trainable_variables, others, strict=True)
        with kernels.use(kernels.for_xla()), keras.StatelessScope(values) as scope:
            losses = smoothed.losses(model, (source, shift_right(target)), target, training=True)
        new = [scope.get_current_value(variable) for variable in model.non_trainable_variables]
        return losses.loss / losses.tokens, new

    (loss, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
    weights, moments = optimizer.stateless_apply(moments, gradients, weights)
    return (weights, others, moments), loss
