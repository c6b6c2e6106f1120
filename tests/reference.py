"""The Transformer in NumPy, from the paper's formulas: the oracle for layers and models.

Float64, one sentence at a time, a loop over heads, no padding and no cache. Each function takes
the layer that it is the oracle for, and reads only its weights and sizes.
"""

from typing import NamedTuple

import keras
import numpy as np

EPSILON = 1e-6  # of layer normalisation


class Output(NamedTuple):
    """The results for one pair; lists have one entry per layer."""

    logits: np.ndarray  # (T, V)
    memory: np.ndarray  # (S, D)
    encoder_attention: list[np.ndarray]  # (H, S, S)
    decoder_attention: list[np.ndarray]  # (H, T, T)
    cross_attention: list[np.ndarray]  # (H, T, S)


def array(tensor) -> np.ndarray:
    """A tensor or variable of any backend, as float64."""
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32")).astype("float64")


def randomize(layer, seed: int = 1):
    """Gives every weight random values, so that no bias is 0 and no gain is 1; returns `layer`.

    Gains are about 1 and matrices keep the variance, so that the output of a deep model still
    depends on its inputs.
    """
    random = np.random.default_rng(seed)
    for weight in layer.weights:
        mean = 1.0 if weight.name == "gamma" else 0.0
        deviation = 0.3 if len(weight.shape) == 1 else weight.shape[0] ** -0.5
        weight.assign(random.normal(mean, deviation, weight.shape).astype("float32"))
    return layer


def gradients(function, *arrays) -> list[np.ndarray]:
    """The gradients of a function that returns a scalar, by the backend's differentiation."""
    if keras.backend.backend() == "jax":
        import jax

        return [array(found) for found in jax.grad(function, range(len(arrays)))(*arrays)]
    if keras.backend.backend() == "torch":
        import torch

        tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
        return [array(found) for found in torch.autograd.grad(function(*tensors), tensors)]
    import tensorflow as tf

    tensors = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    return [array(found) for found in tape.gradient(value, tensors)]


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention_weights(query, key, mask=True, bias=0.0):
    """softmax(Q Kᵀ / √K + bias) (equation 1), over any leading axes."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1]) + bias
    return softmax(np.where(mask, scores, -np.inf))


def attention(query, key, value, mask=True, bias=0.0):
    """softmax(Q Kᵀ / √K + bias) V (equation 1), over any leading axes."""
    return attention_weights(query, key, mask, bias) @ value


def linear(layer, x):
    y = x @ array(layer.kernel)
    return y + array(layer.bias) if layer.use_bias else y


def projections(layer) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel and bias of W^Q, W^K and W^V, which the layer concatenates."""
    keys = layer.num_heads * layer.key_dim
    if layer.is_self_attention:
        parts = [(layer.projection, [keys, 2 * keys])]
    else:
        parts = [(layer.query_projection, []), (layer.key_value_projection, [keys])]
    pairs = []
    for dense, columns in parts:
        bias = array(dense.bias) if dense.use_bias else np.zeros(dense.kernel.shape[1])
        kernels = np.split(array(dense.kernel), columns, axis=1)
        pairs += zip(kernels, np.split(bias, columns), strict=True)
    return pairs


def multi_head_attention(layer, query, value, mask=True, rotate=lambda head: head, bias=0.0):
    """Concat(head₁ … head_H) Wᴼ and the weights (H, T, S) for one sentence (section 3.2.2).

    Args:
        layer: a `MultiHeadAttention`.
        query: array (T, D).
        value: array (S, D).
        mask: bool array that broadcasts to (T, S).
        rotate: applied to the queries and to the keys of each head, (T, K).
        bias: array that broadcasts to (T, S), added to the scores.
    """
    queries, keys, values = (
        np.split(x @ kernel + bias_, layer.num_heads, axis=-1)
        for (kernel, bias_), x in zip(projections(layer), (query, value, value), strict=True)
    )
    weights = [
        attention_weights(rotate(q), rotate(k), mask, bias)
        for q, k in zip(queries, keys, strict=True)
    ]
    heads = [w @ v for w, v in zip(weights, values, strict=True)]
    return linear(layer.output_projection, np.concatenate(heads, axis=-1)), np.stack(weights)


def feed_forward(layer, x):
    """max(0, x W₁ + b₁) W₂ + b₂ (equation 2)."""
    return linear(layer.output_projection, np.maximum(0, linear(layer.hidden, x)))


def layer_norm(layer, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return array(layer.gamma) * centred / np.sqrt(variance + EPSILON) + array(layer.beta)


def residual(layer, x, sublayer):
    """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x))."""
    if layer.norm_first:
        return x + sublayer(layer_norm(layer.norm, x))
    return layer_norm(layer.norm, x + sublayer(x))


def block(layer, x, memory=None, mask=True):
    """A layer of an encoder or decoder: its output, and the weights of both attentions.

    Without a memory there is no cross-attention, and its weights are ().
    """
    found = {"cross": ()}

    def attend(name, attention_layer, query, value, mask=True):
        output, found[name] = multi_head_attention(attention_layer, query, value, mask)
        return output

    x = residual(
        layer.attention_residual, x, lambda y: attend("own", layer.self_attention, y, y, mask)
    )
    if memory is not None:
        x = residual(
            layer.cross_residual, x, lambda y: attend("cross", layer.cross_attention, y, memory)
        )
    x = residual(layer.feed_forward_residual, x, lambda y: feed_forward(layer.feed_forward, y))
    return x, found["own"], found["cross"]


def causal_mask(length):
    return np.tri(length, dtype=bool)


def stack(layer, x, memory=None, mask=True):
    """A whole encoder or decoder: its output, and lists of the weights of both attentions."""
    attention_of_layers, cross_attention = [], []
    for each in layer.layers:
        x, own, cross = block(each, x, memory, mask)
        attention_of_layers.append(own)
        cross_attention.append(cross)
    x = x if layer.final_norm is None else layer_norm(layer.final_norm, x)
    return x, attention_of_layers, cross_attention


def sinusoids(length, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same (section 3.5)."""
    encodings = np.zeros((length, d_model))
    for position in range(length):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            encodings[position, 2 * i] = np.sin(angle)
            encodings[position, 2 * i + 1] = np.cos(angle)
    return encodings


def embed(embedding, position, ids):
    """Embeddings times √D plus positions (sections 3.4 and 3.5)."""
    matrix = array(embedding.embeddings)
    d_model = matrix.shape[1]
    if hasattr(position, "table"):
        positions = array(position.table)[: len(ids)]
    else:
        positions = sinusoids(len(ids), d_model)
    return matrix[ids] * np.sqrt(d_model) + positions


def forward(model, source, target) -> Output:
    """The whole model on one pair: ids (S,) and (T,), without padding."""
    x = embed(model.source_embedding, model.source_position, source)
    memory, encoder_attention, _ = stack(model.encoder, x)
    x = embed(model.target_embedding, model.target_position, target)
    states, *attentions = stack(model.decoder, x, memory, causal_mask(len(target)))
    logits = states @ array(model.output_embedding.embeddings).T
    return Output(logits, memory, encoder_attention, *attentions)
