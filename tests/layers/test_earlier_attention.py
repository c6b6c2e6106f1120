"""A `.keras` file of layers that version 0.2 saved.

Its layers returned tensors, its configurations had all fields of a model's, and one class was both
self-attention and cross-attention.
"""

import pathlib

import keras
import numpy as np
import reference

import tf_transformer  # noqa: F401  registers the layers

FILE = pathlib.Path(__file__).parents[1] / "fixtures" / "layers_0_2.keras"
SOURCE, TARGET = np.array([[5, 6, 3, 2], [4, 2, 0, 0]]), np.array([[1, 3, 4], [1, 6, 2]])


def test_a_file_of_version_0_2_gives_its_numbers():
    """Those that version 0.2 printed: the first row of each sentence."""
    model = keras.saving.load_model(FILE)
    expected = [
        [-0.850959, 2.31452, 1.12512, -0.697028, -0.175056, 0.121833],
        [-1.098293, 2.632348, 1.202957, -0.638787, -0.245576, -0.009403],
    ]
    np.testing.assert_allclose(reference.array(model([SOURCE, TARGET]))[:, 0], expected, atol=1e-5)
    kinds = {type(layer).__name__ for layer in model.layers}
    assert kinds >= {"Encoder", "Decoder", "MultiHeadAttention", "SelfAttention", "Residual"}
