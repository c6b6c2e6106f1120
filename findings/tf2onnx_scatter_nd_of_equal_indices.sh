#!/usr/bin/env bash
# tf2onnx: of the updates of tf.scatter_nd at equal indices, one counts.
#
# Guess:  tf2onnx converts an operation of TensorFlow to nodes of ONNX that compute the same, or says that it cannot.
# Seen:   tf.scatter_nd adds the updates at equal indices. tf2onnx writes ScatterND without the attribute `reduction`,
#         also for operator sets from 16 on, which have it. onnxruntime then keeps one of the updates. No line says so.
#         tf.tensor_scatter_nd_add is converted with `reduction` add, and gives TensorFlow's sums.
# With:   tf2onnx 1.17.0, tensorflow 2.21.0, onnx 1.23.2, onnxruntime 1.32.0, Python 3.11, Linux on x86-64,
#         30 November 2026.
# Effect: counts and histograms are too small. A beam search that marks repeated tokens so repeats them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 tf2onnx==1.17.0 onnx==1.23.2 onnxruntime==1.32.0
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - <<'PY'
import numpy as np
import onnxruntime
import tensorflow as tf
import tf2onnx

INDICES = np.array([1, 2, 1, 1, 5], np.int32)


def scattered(indices):
    return tf.scatter_nd(indices[:, None], tf.ones_like(indices), [6])


def added(indices):
    return tf.tensor_scatter_nd_add(tf.zeros([6], tf.int32), indices[:, None], tf.ones_like(indices))


def both(function):
    """The results of TensorFlow and of onnxruntime."""
    signature = [tf.TensorSpec((None,), tf.int32, name="indices")]
    graph = tf.function(function, autograph=False)
    model, _ = tf2onnx.convert.from_function(graph, input_signature=signature, opset=18)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (found,) = session.run(None, {"indices": INDICES})
    return function(tf.constant(INDICES)).numpy().tolist(), found.tolist()


for function in (scattered, added):
    print(function.__name__, *both(function))
assert both(scattered) == ([0, 3, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1])
assert both(added) == ([0, 3, 1, 0, 0, 1], [0, 3, 1, 0, 0, 1])
PY
