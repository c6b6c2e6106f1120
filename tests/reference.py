"""The Transformer in NumPy, from the paper's formulas: the oracle for layers and models.

Float64, one sentence at a time, a loop over heads, no padding and no cache. Each function takes
the layer that it is the oracle for, and reads only its weights and sizes.
"""

import math
from typing import NamedTuple

import keras
import numpy as np

EPSILON = 1e-6  # of layer normalisation
# Of `fit` in tests: on TensorFlow, XLA takes longer for a model than a test's updates.
FIT_COMPILES = keras.backend.backend() == "jax"


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


def ssru(layer, x):
    """The outputs (T, D) of an `SSRU` for one sentence (Kim et al. 2019)."""
    of_values, of_gates = np.split(array(layer.projection.kernel), 2, axis=1)
    state, outputs = np.zeros(x.shape[1]), []
    for x_t in x:
        forget = 1 / (1 + np.exp(-(x_t @ of_gates + array(layer.forget_bias))))
        state = forget * state + (1 - forget) * (x_t @ of_values)
        outputs.append(np.maximum(state, 0))
    return np.array(outputs)


def projections(layer) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel and bias of W^Q, W^K and W^V, which the layer concatenates."""
    config = layer.config
    queries, keys = (
        heads * config.key_dim for heads in (config.num_heads, config.num_key_value_heads)
    )
    if hasattr(layer, "projection"):
        parts = [(layer.projection, [queries, queries + keys])]
    else:
        parts = [(layer.query_projection, []), (layer.key_value_projection, [keys])]
    pairs = []
    for dense, columns in parts:
        bias = array(dense.bias) if dense.use_bias else np.zeros(dense.kernel.shape[1])
        kernels = np.split(array(dense.kernel), columns, axis=1)
        pairs += zip(kernels, np.split(bias, columns), strict=True)
    return pairs


def multi_head_attention(
    layer, query, value, mask=True, rotate=lambda head: head, bias=lambda number, query: 0.0
):
    """Concat(head₁ … head_H) Wᴼ and the weights (H, T, S) for one sentence (section 3.2.2).

    A head of queries whose number is h has the keys and values of head h · G // H.

    Args:
        layer: an `Attention`.
        query: array (T, D).
        value: array (S, D).
        mask: bool array that broadcasts to (T, S).
        rotate: applied to the queries and to the keys of each head, (T, K).
        bias: the array (T, S) to add to the scores of a head, from its number and its rotated
            queries (T, K).
    """
    num_heads, groups = layer.config.num_heads, layer.config.num_key_value_heads
    queries, keys, values = (
        np.split(x @ kernel + bias_, count, axis=-1)
        for (kernel, bias_), x, count in zip(
            projections(layer),
            (query, value, value),
            (num_heads, groups, groups),
            strict=True,
        )
    )
    shared = [number * groups // num_heads for number in range(num_heads)]
    keys, values = ([heads[number] for number in shared] for heads in (keys, values))
    weights = [
        attention_weights(rotate(q), rotate(k), mask, bias(number, rotate(q)))
        for number, (q, k) in enumerate(zip(queries, keys, strict=True))
    ]
    heads = [w @ v for w, v in zip(weights, values, strict=True)]
    return linear(layer.output_projection, np.concatenate(heads, axis=-1)), np.stack(weights)


def feed_forward(layer, x):
    """max(0, x W₁ + b₁) W₂ + b₂ (equation 2), or with another activation."""
    hidden = linear(layer.hidden, x)
    if layer.config.activation == "relu":
        hidden = np.maximum(0, hidden)
    elif layer.config.activation == "gelu":
        hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
    else:
        gate, factor = hidden[..., : layer.config.d_ff], hidden[..., layer.config.d_ff :]
        hidden = gate / (1 + np.exp(-gate)) * factor
    return linear(layer.output_projection, hidden)


def layer_norm(layer, x):
    """Layer normalisation, or RMSNorm for a layer without β."""
    if not hasattr(layer, "beta"):
        return array(layer.gamma) * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return array(layer.gamma) * centred / np.sqrt(variance + EPSILON) + array(layer.beta)


def residual(layer, x, sublayer):
    """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x))."""
    if layer.config.norm_first:
        return x + sublayer(layer_norm(layer.norm, x))
    return layer_norm(layer.norm, x + sublayer(x))


def block(layer, x, memory=None, mask=True, position=None):
    """A layer of an encoder or decoder: its output, and the weights of both attentions.

    Without a memory there is no cross-attention, and its weights are ().
    """
    found = {"cross": ()}

    def attend(name, attention_layer, query, value, *more):
        output, found[name] = multi_head_attention(attention_layer, query, value, *more)
        return output

    hooks = position_hooks(position, layer.config.num_heads)
    x = residual(
        layer.attention_residual,
        x,
        lambda y: attend("own", layer.self_attention, y, y, mask, *hooks),
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
        x, own, cross = block(each, x, memory, mask, layer.position)
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


def rotary(head):
    """Pairs of row m turned by m · 10000^(-2i/K) (Su et al. 2021, equation 15)."""
    turned = np.zeros_like(head)
    for m, row in enumerate(head):
        for i in range(0, len(row), 2):
            angle = m / 10_000 ** (i / len(row))
            turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            turned[m, i : i + 2] = turn @ row[i : i + 2]
    return turned


def shaw_bias(table, query):
    """qᵢ · a(clip(j - i, k)) / √K (Shaw et al. 2018, equations 4 and 5), (T, T)."""
    k, length = len(table) // 2, len(query)
    distances = np.clip(np.arange(length) - np.arange(length)[:, None], -k, k)
    return np.einsum("tk,tsk->ts", query, table[distances + k]) / np.sqrt(query.shape[-1])


def t5_bucket(distance, is_causal, num_buckets, max_distance):
    """The bucket of key position minus query position, in T5's published code."""
    bucket, n = 0, -distance
    if not is_causal:
        num_buckets //= 2
        bucket, n = (num_buckets if n < 0 else 0), abs(n)
    n = max(n, 0)
    exact = num_buckets // 2
    if n < exact:
        return bucket + n
    grown = math.log(n / exact) / math.log(max_distance / exact) * (num_buckets - exact)
    return bucket + min(exact + int(grown + 1e-9), num_buckets - 1)  # 1e-9: float64's rounding


def alibi_slopes(count):
    """As the code of Press et al. 2022 computes them."""
    if math.log2(count).is_integer():
        start = 2 ** (-(2 ** -(math.log2(count) - 3)))
        return [start * start**i for i in range(count)]
    lower = 2 ** math.floor(math.log2(count))
    return alibi_slopes(lower) + alibi_slopes(2 * lower)[0::2][: count - lower]


def position_hooks(position, num_heads):
    """The rotation and the bias of an encoding that acts on scores, for positions 0 to T - 1."""
    name = type(position).__name__

    def rotate(head):
        return rotary(head) if name == "RotaryPosition" else head

    def bias(number, query):
        distances = np.arange(len(query)) - np.arange(len(query))[:, None]  # key minus query
        if name == "RelativePosition":
            return shaw_bias(array(position.table), query)
        if name == "T5Position":
            sizes = position.is_causal, position.num_buckets, position.max_distance
            buckets = [[t5_bucket(distance, *sizes) for distance in row] for row in distances]
            return array(position.table)[np.array(buckets), number]
        if name == "AlibiPosition":
            return -alibi_slopes(num_heads)[number] * np.abs(distances)
        return 0.0

    return rotate, bias


def embed(embedding, position, ids):
    """Embeddings times √D plus positions (sections 3.4 and 3.5)."""
    matrix = array(embedding.embeddings)
    d_model = matrix.shape[1]
    positions = {
        "LearnedPosition": lambda: array(position.table)[: len(ids)],
        "SinusoidalPosition": lambda: sinusoids(len(ids), d_model),
    }.get(type(position).__name__, lambda: 0.0)
    return matrix[ids] * np.sqrt(d_model) + positions()


def forward(model, source, target) -> Output:
    """The whole model on one pair: ids (S,) and (T,), without padding."""
    x = embed(model.source_embedding, model.source_position, source)
    memory, encoder_attention, _ = stack(model.encoder, x)
    x = embed(model.target_embedding, model.target_position, target)
    states, *attentions = stack(model.decoder, x, memory, causal_mask(len(target)))
    logits = states @ array(model.output_embedding.embeddings).T
    return Output(logits, memory, encoder_attention, *attentions)
