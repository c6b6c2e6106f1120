#!/usr/bin/env bash
# Keras: class_weight with labels of shape (batch, time) weights each row by the place of its largest label.
#
# Guess:  fit(class_weight=…) weights each label of a sequence by its class, or refuses several labels a row.
# Seen:   labels (batch, time) of a sparse loss count as one-hot rows. The weight of a whole row is that of the class
#         argmax over time, which is a position and no class. The losses of rows [2, 0, 0] and [0, 0, 2] are multiplied
#         by the weights of the classes 0 and 2, although both hold the same labels. Nothing is said.
# With:   keras 3.15.1, tensorflow 2.21.0, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: a translator or tagger that trains with class_weight={0: 0, …} to ignore padding ignores random rows instead.
#         Give sample_weight of shape (batch, time).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import keras
import numpy as np

embedding = keras.layers.Embedding(5, 4, embeddings_initializer="zeros")
model = keras.Sequential([keras.Input((3,), dtype="int32"), embedding])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.SGD(0.0), loss=loss)
ids = np.zeros((1, 3), "int32")


def weight(labels):
    """The loss of a row with class weights, over its loss without them."""
    y = np.array([labels])
    losses = [
        model.fit(ids, y, verbose=0, class_weight=weights).history["loss"][0]
        for weights in ({0: 1.0, 1: 10.0, 2: 100.0}, None)
    ]
    return losses[0] / losses[1]


weights = [round(float(weight(labels)), 3) for labels in ([2, 0, 0], [0, 2, 0], [0, 0, 2])]
print("weights of rows with the labels 2, 0, 0 in three orders:", weights, "- by their classes all would be 34")
assert np.allclose(weights, [1, 10, 100])
PY
