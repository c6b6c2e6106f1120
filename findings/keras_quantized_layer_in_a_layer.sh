#!/usr/bin/env bash
# Keras: a model with a custom layer that holds a Dense is quantized and saved, but its file cannot be loaded.
#
# Guess:  after model.quantize("int8"), model.save and keras.saving.load_model give the quantized model.
# Seen:   quantize changes the Dense inside the custom layer, and save writes it without a warning. load_model makes a
#         Dense of float32 from the custom layer's own configuration, and then fails, because the variables differ.
#         The same Dense directly in the model is loaded with equal outputs.
# With:   keras 3.15.1, tensorflow 2.21.0, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: the only copy of a quantized Transformer of custom layers may be a file that nothing loads.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import keras
import numpy as np


@keras.saving.register_keras_serializable("finding")
class Block(keras.layers.Layer):
    """The pattern of the guides: parts made in __init__, built in build."""

    def __init__(self, **options):
        super().__init__(**options)
        self.dense = keras.layers.Dense(8)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x):
        return self.dense(x)


x = np.random.default_rng(0).normal(size=(2, 8)).astype("float32")


def saved_and_loaded(layer):
    model = keras.Sequential([keras.Input((8,)), layer])
    model.quantize("int8")
    model.save("model.keras")
    return np.abs(keras.saving.load_model("model.keras").predict(x, verbose=0) - model.predict(x, verbose=0)).max()


difference = saved_and_loaded(keras.layers.Dense(8))
assert difference == 0
try:
    saved_and_loaded(Block())
except ValueError as error:
    print("Dense in the model: loaded. Dense in a layer:", str(error).splitlines()[0][:150])
else:
    raise SystemExit("the file is now loaded")
PY
