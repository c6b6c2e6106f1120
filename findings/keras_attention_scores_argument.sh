#!/usr/bin/env bash
# Keras: asking MultiHeadAttention for its scores changes the output of queries that may attend to nothing.
#
# Guess:  return_attention_scores adds a second result and leaves the first as it is.
# Seen:   for a query whose mask is False everywhere, the output is the mean of all values without the argument
#         (and without dropout), because keras.ops.dot_product_attention computes it, and zero with the argument.
#         Other queries have equal outputs.
# With:   keras 3.15.1, jax 0.10.2 as its backend (TensorFlow 2.21 gave the same), Python 3.11, Linux on x86-64,
#         28 November 2026.
# Effect: an empty sentence in a batch (a source of padding alone) reads the embeddings of padding in one mode and
#         nothing in the other. Training with dropout takes the second way, and inference the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet keras==3.15.1 jax==0.10.2
KERAS_BACKEND=jax env/bin/python - <<'PY'
import keras
import numpy as np

random = np.random.default_rng(0)
query = random.normal(size=(1, 2, 4)).astype("float32")
value = random.normal(size=(1, 3, 4)).astype("float32")
mask = np.array([[[True, True, False], [False, False, False]]])

layer = keras.layers.MultiHeadAttention(num_heads=1, key_dim=4)
plain = np.array(layer(query, value, attention_mask=mask))[0]
with_scores = np.array(layer(query, value, attention_mask=mask, return_attention_scores=True)[0])[0]
with_dropout = keras.layers.MultiHeadAttention(num_heads=1, key_dim=4, dropout=0.1)
with_dropout.build(query.shape, value.shape)
with_dropout.set_weights(layer.get_weights())
never_drops = np.array(with_dropout(query, value, attention_mask=mask, training=False))[0]
kernel, bias = layer._output_dense.get_weights()
values = np.einsum("sd,dhk->shk", value[0], layer._value_dense.get_weights()[0]).mean(0)
mean = np.einsum("hk,hkd->d", values, kernel) + bias
print("query 1, scores or not:", plain[0].round(3), with_scores[0].round(3))
print("query 2, scores or not:", plain[1].round(3), with_scores[1].round(3))
print("query 2, dropout layer at inference:", never_drops[1].round(3))
assert np.allclose(plain[0], with_scores[0], atol=1e-5)
assert np.allclose(plain[1], mean, atol=1e-5) and not np.allclose(plain[1], 0)
assert np.allclose(with_scores[1], 0) and np.allclose(never_drops[1], 0)
PY
