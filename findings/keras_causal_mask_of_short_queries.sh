#!/usr/bin/env bash
# Keras: the causal mask of fewer queries than keys lets the last query see the first keys only.
#
# Guess:  with a cache of S keys, use_causal_mask=True lets the newest query see all S of them.
# Seen:   the mask counts queries from the first key: query t sees keys 0 to t. One new query sees one key, the oldest.
#         keras.ops.dot_product_attention(is_causal=True) does the same.
# With:   keras 3.15.1, jax 0.10.2 as its backend (TensorFlow 2.21 gave the same), Python 3.11, Linux on x86-64,
#         28 November 2026.
# Effect: decoding with a cache attends to the start token alone, and nothing fails. Give an explicit mask instead.
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
target = random.normal(size=(1, 5, 4)).astype("float32")
layer = keras.layers.MultiHeadAttention(num_heads=1, key_dim=4)
whole, scores = layer(target, target, use_causal_mask=True, return_attention_scores=True)
newest, of_newest = layer(target[:, -1:], target, use_causal_mask=True, return_attention_scores=True)
print("keys that the last query of five sees:", int((np.array(scores)[0, 0, -1] > 0).sum()))
print("keys that the same query sees on its own:", int((np.array(of_newest)[0, 0, -1] > 0).sum()))
assert (np.array(scores)[0, 0, -1] > 0).all()
assert (np.array(of_newest)[0, 0, -1] > 0).tolist() == [True, False, False, False, False]
values = np.arange(5, dtype="float32").reshape(1, 5, 1, 1)
zeros = np.zeros_like(values)
one = keras.ops.dot_product_attention(zeros[:, :1], zeros, values, is_causal=True)
assert float(one[0, 0, 0, 0]) == 0  # the mean over all keys would be 2
PY
