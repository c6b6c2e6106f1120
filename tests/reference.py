"""The Transformer in NumPy, written from the paper's formulas: the oracle for layers and model.

Plain on purpose: float64, one sentence at a time, a loop over heads, no padding and no cache.
Functions take the layer they are the oracle of and read nothing but its weights and its sizes.
"""

import keras
import numpy as np

EPSILON = 1e-6  # of layer normalisation


def array(tensor) -> np.ndarray:
    """A backend's tensor or variable, as float64."""
    return keras.ops.convert_to_numpy(tensor).astype("float64")


def randomize(layer, seed: int = 1):
    """Gives every weight random values, so that no bias is 0 and no gain is 1; returns `layer`.

    Gains are about 1 and matrices keep the variance, so that a deep model still depends on its
    inputs.
    """
    random = np.random.default_rng(seed)
    for weight in layer.weights:
        mean = 1.0 if weight.name == "gamma" else 0.0
        deviation = 0.3 if len(weight.shape) == 1 else weight.shape[0] ** -0.5
        weight.assign(random.normal(mean, deviation, weight.shape).astype("float32"))
    return layer


def gradients(function, *arrays) -> list[np.ndarray]:
    """The gradients of a function's only number, by the backend's automatic differentiation."""
    if keras.backend.backend() == "jax":
        import jax

        return [array(found) for found in jax.grad(function, range(len(arrays)))(*arrays)]
    import tensorflow as tf

    tensors = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    return [array(found) for found in tape.gradient(value, tensors)]


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attention(query, key, value, mask=True):
    """softmax(Q Kᵀ / √K) V (equation 1), over any leading axes."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    return softmax(np.where(mask, scores, -np.inf)) @ value


def linear(layer, x):
    y = x @ array(layer.kernel)
    return y + array(layer.bias) if layer.use_bias else y


def projections(layer) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel and bias of W^Q, W^K and W^V, which the layer keeps side by side."""
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


def multi_head_attention(layer, query, value, mask=True):
    """Concat(head₁ … head_H) Wᴼ for one sentence (section 3.2.2); the mask is (T, S)."""
    queries, keys, values = (
        np.split(x @ kernel + bias, layer.num_heads, axis=-1)
        for (kernel, bias), x in zip(projections(layer), (query, value, value), strict=True)
    )
    heads = [attention(q, k, v, mask) for q, k, v in zip(queries, keys, values, strict=True)]
    return linear(layer.output_projection, np.concatenate(heads, axis=-1))


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


def encoder_layer(layer, x):
    x = residual(
        layer.attention_residual, x, lambda y: multi_head_attention(layer.self_attention, y, y)
    )
    return residual(layer.feed_forward_residual, x, lambda y: feed_forward(layer.feed_forward, y))


def decoder_layer(layer, x, memory):
    causal = np.tri(len(x), dtype=bool)
    x = residual(
        layer.self_residual, x, lambda y: multi_head_attention(layer.self_attention, y, y, causal)
    )
    x = residual(
        layer.cross_residual, x, lambda y: multi_head_attention(layer.cross_attention, y, memory)
    )
    return residual(layer.feed_forward_residual, x, lambda y: feed_forward(layer.feed_forward, y))


def sinusoids(length, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same (section 3.5)."""
    encodings = np.zeros((length, d_model))
    for position in range(length):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            encodings[position, 2 * i] = np.sin(angle)
            encodings[position, 2 * i + 1] = np.cos(angle)
    return encodings


def embed(model, embedding, position, ids):
    """Embeddings times √D plus positions (sections 3.4 and 3.5)."""
    d_model = model.config.d_model
    if model.config.position == "learned":
        positions = array(position.table)[: len(ids)]
    else:
        positions = sinusoids(len(ids), d_model)
    return array(embedding.embeddings)[ids] * np.sqrt(d_model) + positions


def encode(model, source):
    """Memory (S, D) of one sentence: ids (S,) without padding."""
    x = embed(model, model.source_embedding, model.source_position, source)
    for layer in model.encoder.layers:
        x = encoder_layer(layer, x)
    return layer_norm(model.encoder.final_norm, x) if model.config.norm_first else x


def transformer(model, source, target):
    """Logits (T, V) of one pair: ids (S,) and (T,), without padding."""
    memory = encode(model, source)
    x = embed(model, model.target_embedding, model.target_position, target)
    for layer in model.decoder.layers:
        x = decoder_layer(layer, x, memory)
    x = layer_norm(model.decoder.final_norm, x) if model.config.norm_first else x
    return x @ array(model.output_embedding.embeddings).T
