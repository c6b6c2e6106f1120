"""Every example in a docstring runs and gives what it says."""

import doctest
import importlib

import keras
import numpy as np
import pytest

MODULES = [
    "config",
    "data.batching",
    "data.corpus",
    "data.generated",
    "data.tokens",
    "decoding.beam",
    "decoding.hypotheses",
    "decoding.sampling",
    "layers.attention",
    "layers.decoder",
    "layers.embedding",
    "layers.encoder",
    "layers.feed_forward",
    "layers.masks",
    "layers.position",
    "layers.residual",
    "model",
    "tasks.translation",
    "tokenizer",
    "training.loss",
    "training.metrics",
    "training.schedule",
]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="examples print TensorFlow's shapes"
)
@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    module = importlib.import_module(f"tf_transformer.{name}")
    names = vars(importlib.import_module("tf_transformer.layers")) | vars(module) | {"np": np}
    failed, _ = doctest.testmod(
        module, extraglobs=names, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0
