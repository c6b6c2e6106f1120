#!/usr/bin/env bash
# TensorFlow Datasets: TranslateFolder with shuffle_files=True hardly shuffles.
#
# Guess:  shuffle_files=True gives the sentence pairs in random order, as its documentation's example asks for.
# Seen:   its shuffle buffer has one place per language, which are two, not one per pair. Of 1,000 pairs, half move by
#         one place or not at all, and no pair comes more than one place too early.
# With:   tensorflow-datasets 4.9.10, tensorflow 2.21.0, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: a corpus sorted by length, date or source is trained on in that order. Shuffle it again, with a large buffer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow-datasets==4.9.10 tensorflow==2.21.0 importlib_resources==6.5.2
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

pathlib.Path("pairs").mkdir()
for language in ("de", "en"):
    pathlib.Path(f"pairs/{language}.train.txt").write_text("".join(f"{i}\n" for i in range(1000)))
tf.random.set_seed(1)
examples = tfds.TranslateFolder("pairs").as_dataset(split="train", shuffle_files=True)
order = np.array([int(example["en"].numpy()) for example in examples])
assert sorted(order) == list(range(1000))
moved = np.abs(order - np.arange(1000))
print(f"pairs moved by {np.median(moved):.0f} places (median); uniform order: 293")
print("first ten:", *order[:10])
assert np.median(moved) <= 1 and (order - np.arange(1000)).max() <= 1
PY
