"""The recurrent models that the Transformer replaced."""

import keras
import numpy as np
import pytest
from keras import ops

from tf_transformer.config import ModelConfig
from tf_transformer.decoding import StepOptions
from tf_transformer.models.recurrent import RecurrentModel

SOURCE = np.array([[5, 15, 7, 2], [8, 2, 0, 0]])  # of another vocabulary
TARGET = np.array([[1, 9, 4, 3, 8], [1, 7, 0, 0, 0]])


def make_model(architecture, **options):
    keras.utils.set_random_seed(1)
    options = {
        "num_layers": 2,
        "d_model": 6,
        "encoder_d_model": 4,
        "tie_embeddings": "none",
    } | options
    config = ModelConfig(architecture=architecture, num_heads=1, **options)
    model = RecurrentModel(13, config, source_vocabulary_size=17)
    model.build()
    for weight in model.weights:  # biases start as 0, which would hide them
        noise = np.random.default_rng(len(weight.path)).normal(0, 0.5, weight.shape)
        weight.assign(ops.convert_to_numpy(weight) + noise)
    return model


@pytest.fixture(scope="module", params=["bahdanau", "luong"])
def model(request):
    return make_model(request.param)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(cell, x, h):
    """Cho et al. (2014) with the reset gate after the product, as cuDNN computes it."""
    kernel, recurrent, bias = (ops.convert_to_numpy(w) for w in cell.weights)
    (xz, xr, xh), (hz, hr, hh) = (
        np.split(product, 3) for product in (x @ kernel + bias[0], h @ recurrent + bias[1])
    )
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    return z * h + (1 - z) * np.tanh(xh + r * hh)


def dense(layer, x):
    kernel, *bias = (ops.convert_to_numpy(w) for w in layer.weights)
    return x @ kernel + sum(bias)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def embed(layer, ids):
    table = ops.convert_to_numpy(layer.embeddings)
    return table[ids] * table.shape[1] ** 0.5


def reference(model, source, target):
    """Logits (T, V) of one sentence without padding, from the papers' equations."""
    memory = list(embed(model.source_embedding, source))
    for layer in model.encoder_layers:
        directions = []
        for cell, order in ((layer.forward_layer.cell, 1), (layer.backward_layer.cell, -1)):
            h, states = np.zeros(cell.units), []
            for x in memory[::order]:
                h = gru(cell, x, h)
                states.append(h)
            directions.append(states[::order])
        memory = [np.concatenate(pair) for pair in zip(*directions, strict=True)]
    memory, decoder = np.array(memory), model.decoder
    hidden = [np.tanh(dense(layer, memory.mean(axis=0))) for layer in decoder.initial]
    output, outputs = np.zeros_like(hidden[0]), []

    def attend(query):
        attention = decoder.attention
        keys = dense(attention.memory_projection, memory)
        if model.config.architecture == "luong":
            scores = keys @ query
        else:
            hidden = np.tanh(dense(attention.query_projection, query) + keys)
            scores = hidden @ ops.convert_to_numpy(attention.v)[:, 0]
        return softmax(scores) @ memory

    for y in embed(model.target_embedding, target):
        is_luong = model.config.architecture == "luong"
        context = None if is_luong else attend(hidden[-1])
        x = np.concatenate([y, output if is_luong else context])
        for i, cell in enumerate(decoder.cells):
            x = hidden[i] = gru(cell, x, hidden[i])
        parts = [x, attend(x)] if is_luong else [x, context, y]
        output = np.tanh(dense(decoder.projection, np.concatenate(parts)))
        outputs.append(output)
    return np.array(outputs) @ ops.convert_to_numpy(model.output_embedding.embeddings).T


def test_logits_equal_numpy_on_one_sentence_at_a_time_without_padding(model):
    logits = ops.convert_to_numpy(model((SOURCE, TARGET)))
    for i, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        source, target = source[source > 0], target[target > 0]
        expected = reference(model, source, target)
        np.testing.assert_allclose(logits[i, : len(target)], expected, atol=2e-5)


def test_every_step_of_a_search_equals_decoding_the_whole(model):
    """Two hypotheses per sentence."""
    others = np.array([[1, 8, 3, 4, 9], [1, 3, 7, 0, 0]])
    targets = np.stack([TARGET, others], axis=1)
    expected = np.stack(
        [ops.convert_to_numpy(model((SOURCE, t))) for t in targets.swapaxes(0, 1)], 1
    )
    step = model.step_function(SOURCE, StepOptions(2, max_length=5, coverage_penalty=0.2))
    state = step.start
    for index in range(targets.shape[2]):
        logits, state = step(targets[:, :, index], state, index)
        np.testing.assert_allclose(ops.convert_to_numpy(logits), expected[:, :, index], atol=2e-5)
    coverage = ops.convert_to_numpy(state.per_hypothesis.coverage)
    np.testing.assert_allclose(coverage.sum(axis=-1), 5, rtol=1e-5)


def test_a_saved_model_computes_the_same(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded((SOURCE, TARGET)), model((SOURCE, TARGET)))


def test_an_odd_encoder_is_an_error():
    with pytest.raises(ValueError, match=r"an even encoder_d_model, .* got 'luong' and 3"):
        make_model("luong", encoder_d_model=3, position="learned")
