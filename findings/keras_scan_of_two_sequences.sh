#!/usr/bin/env bash
# Keras 3 on TensorFlow: keras.ops.scan of two sequences of unknown length fails in a graph; of one sequence it runs.
#
# Guess:  xs of keras.ops.scan may be a pair of sequences, as its documentation says, of any length.
# Seen:   with a known length it runs, and so it does with one sequence of unknown length. With two of unknown length,
#         tracing ends with "'NoneType' object has no attribute 'assert_is_compatible_with'".
# With:   tensorflow 2.21.0, keras 3.15.1, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: a recurrent layer that passes tests with fixed lengths fails in training. Stack the sequences into one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import numpy as np
import tensorflow as tf
from keras import ops


def products(carry, xs):
    new = carry + xs[0] * xs[1]
    return new, new


def of_pair(a, b):
    return ops.scan(products, ops.zeros_like(a[0]), (a, b))[1]


def of_stack(a, b):
    return ops.scan(products, ops.zeros_like(a[0]), ops.stack([a, b], axis=1))[1]


def traced(function, length):
    return tf.function(function, [tf.TensorSpec((length, 2))] * 2, autograph=False)


x = tf.random.normal((3, 2))
expected = np.cumsum(x * x, axis=0)
assert np.allclose(traced(of_pair, 3)(x, x), expected, atol=1e-5)
assert np.allclose(traced(of_stack, None)(x, x), expected, atol=1e-5)
try:
    traced(of_pair, None)(x, x)
except AttributeError as error:
    print("one sequence, and a pair of known length: right. A pair of unknown length:", error)
else:
    raise SystemExit("a pair of unknown length now runs, too")
PY
