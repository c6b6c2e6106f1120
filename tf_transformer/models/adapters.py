"""Low-rank adapters (Hu et al. 2022): two small matrices beside each matrix of a trained model.

A product with the kernel W (inputs, outputs) becomes one with W + A B. A is (inputs, rank), and B
is (rank, outputs), so both together have far fewer numbers than W. Only they train. B starts with
zeros, so the model starts with its own predictions.
"""

import zlib

import keras

from tf_transformer.layers.dense import Dense
from tf_transformer.models.names import by_name

A, B = "lora_kernel_a", "lora_kernel_b"  # Keras' names


def add_adapters(model: keras.Model, rank: int) -> None:
    """Gives each dense layer of a built model an adapter, and freezes all other weights.

    The rank is the number of columns of A and rows of B.

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> add_adapters(model, rank=2)
        >>> {name.rpartition("/")[2] for name, x in by_name(model).items() if x.trainable} == {A, B}
        True
    """
    for layer in model._flatten_layers():  # Keras has no public way to the layers of layers
        if isinstance(layer, Dense):
            layer.enable_lora(rank)
    for name, weight in by_name(model).items():
        weight.trainable = is_adapter(name)


def is_adapter(name: str) -> bool:
    """Whether a name is that of a matrix of an adapter."""
    return name.endswith((f"/{A}", f"/{B}"))


def own_weights(model: keras.Model) -> dict[str, keras.Variable]:
    """The weights that a checkpoint of the model holds, by name: its adapters, if it has some."""
    weights = by_name(model)
    adapters = {name: weight for name, weight in weights.items() if is_adapter(name)}
    return adapters or weights


def checksum(model: keras.Model) -> int:
    """A checksum of the weights that adapters belong to, at most 32 bits."""
    value = 0
    for name, weight in sorted(by_name(model).items()):
        if not is_adapter(name):
            value = zlib.crc32(keras.ops.convert_to_numpy(weight).tobytes(), value)
    return value
