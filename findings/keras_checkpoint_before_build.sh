#!/usr/bin/env bash
# Keras 3 and tf.train.Checkpoint: a model that is restored before it is built keeps its random weights.
#
# Guess:  as TensorFlow's guide to checkpoints says, values wait and are given to variables when these are made.
# Seen:   restore returns without an error or a warning, the first call builds the layers, and their weights are random.
#         A tf.Module restored in the same order gets its values. So does the model, restored after its first call.
# With:   tensorflow 2.21.0, keras 3.15.1, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: code for Keras 2 that restores a subclassed model before its first call now continues with random weights.
#         assert_consumed() after the restore reports it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import keras
import numpy as np
import tensorflow as tf

x = np.ones((1, 3), "float32")


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return self.dense(x)


class Module(tf.Module):
    weight = None

    def __call__(self, x):
        if self.weight is None:
            self.weight = tf.Variable(tf.random.normal((3, 2)))
        return x @ self.weight


def outputs(make):
    """Of a new object, of one restored before its first call, and of one restored after it."""
    saved, before, after = make(), make(), make()
    expected = np.array(saved(x))
    path = tf.train.Checkpoint(model=saved).write(make.__name__)
    tf.train.Checkpoint(model=before).read(path)
    after(x)
    tf.train.Checkpoint(model=after).read(path)
    return expected, np.array(before(x)), np.array(after(x))


module = outputs(Module)
model = outputs(Model)
print("tf.Module, restored before and after its first call:", [np.allclose(module[0], y) for y in module[1:]])
print("keras.Model, restored before and after its first call:", [np.allclose(model[0], y) for y in model[1:]])
assert np.allclose(module[0], module[1]) and np.allclose(module[0], module[2])
assert not np.allclose(model[0], model[1]) and np.allclose(model[0], model[2])
PY
