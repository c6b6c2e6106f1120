"""A Flax encoder-decoder with optax, jitted: the same sizes, layers and dropout."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from benchmarks.harness.shapes import Shape
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
    sinusoids,
    tokens_of,
)


def task(setting: Setting, cell: Cell) -> Task:
    """Trains the model of this shape."""
    model = _Model(setting.shape, cell.tokens, cell.dtype)
    optimizer = optax.adam(LEARNING_RATE, *BETAS, EPSILON)
    made = batches(setting.shape, cell)
    data = [tuple(jnp.asarray(ids) for ids in batch) for batch in made]
    key = jax.random.key(1)
    weights = jax.jit(model.init)({"params": key, "dropout": key}, *data[0][:2])
    update = jax.jit(functools.partial(_update, model, optimizer), donate_argnums=(0, 1, 2))
    state = [weights, jax.jit(optimizer.init)(weights), key]

    def run() -> float:
        losses = []
        for batch in data:
            *state[:], loss = update(*state, *batch)
            losses.append(loss)
        return float(np.mean(losses))

    parameters = sum(array.size for array in jax.tree.leaves(weights))
    return Task(tokens_of(made), run, float, BATCHES, parameters)


def _update(model, optimizer, weights, moments, key, source, target, labels):
    """New weights, moments and key, and the loss."""
    key, dropout = jax.random.split(key)

    def loss_of(weights):
        logits = model.apply(weights, source, target, rngs={"dropout": dropout})
        one_hot = jax.nn.one_hot(labels, logits.shape[-1])
        smoothed = optax.smooth_labels(one_hot, LABEL_SMOOTHING)
        logits = logits.astype("float32")
        return jnp.mean(optax.softmax_cross_entropy(logits, smoothed))

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    changes, moments = optimizer.update(gradients, moments)
    return optax.apply_updates(weights, changes), moments, key, loss


class _Model(nn.Module):
    """(source, target) to logits, with dropout on."""

    shape: Shape
    tokens: int
    dtype: str

    @nn.compact
    def __call__(self, source, target):
        shape, dtype = self.shape, self.dtype
        fill = nn.initializers.normal(shape.d_model**-0.5)
        embedding = nn.Embed(shape.vocabulary_size, shape.d_model, dtype=dtype, embedding_init=fill)
        positions = jnp.asarray(sinusoids(shape, self.tokens), dtype)

        def embedded(ids):
            return _dropped(embedding(ids) * math.sqrt(shape.d_model) + positions)

        memory, x = embedded(source), embedded(target)
        causal = nn.make_causal_mask(target)
        for _ in range(shape.num_layers):
            memory = _added(memory, _attention(shape, dtype)(memory))
            memory = _added(memory, _feed_forward(memory, shape, dtype))
        for _ in range(shape.num_layers):
            x = _added(x, _attention(shape, dtype)(x, mask=causal))
            x = _added(x, _attention(shape, dtype)(x, memory))
            x = _added(x, _feed_forward(x, shape, dtype))
        return embedding.attend(x)


def _attention(shape: Shape, dtype: str) -> nn.MultiHeadDotProductAttention:
    return nn.MultiHeadDotProductAttention(
        shape.num_heads, use_bias=False, deterministic=True, dtype=dtype
    )


def _feed_forward(x, shape: Shape, dtype: str):
    hidden = nn.relu(nn.Dense(shape.d_ff, dtype=dtype)(x))
    return nn.Dense(shape.d_model, dtype=dtype)(hidden)


def _added(x, output):
    return nn.LayerNorm(dtype=x.dtype)(x + _dropped(output))


def _dropped(x):
    return nn.Dropout(DROPOUT, deterministic=False)(x)
