"""The adapters in the checkpoints of a run, which belong to the weights of another run."""

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.models.adapters import A, B, checksum, is_adapter
from tf_transformer.models.names import by_name
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import (
    VALUE,
    Average,
    broken_as_input_error,
    require_finite,
    selected,
)

BASE = "base"  # the key of the checksum of the weights that adapters belong to


def load_adapters(folder: RunFolder, model: keras.Model, average: Average) -> int:
    """Adds the product of each adapter of a run to the kernel that it belongs to.

    Several checkpoints give the mean of their products, so that the result is the mean of the
    models that they stand for.

    Args:
        folder: the run's folder.
        model: the built model, with the weights of the run in `train.init_from`.
        average: as in `load_weights`.

    Returns:
        the number of checkpoints that were read.

    Raises:
        InputError: when the run does not have these checkpoints, when one is broken, and when the
            model does not have the weights that the adapters were trained with.
    """
    weights, paths = by_name(model), selected(folder, average)
    added = {name: np.zeros(x.shape) for name, x in weights.items() if name.endswith("/kernel")}
    for path in paths:
        require_base(path, model)
        with broken_as_input_error(path):
            reader = tf.train.load_checkpoint(path)
            keys = [key.removesuffix(VALUE) for key in reader.get_variable_to_shape_map()]
            stems = {key.rpartition("/")[0] for key in keys if is_adapter(key)}
            for stem in stems:
                first, second = (reader.get_tensor(f"{stem}/{x}{VALUE}") for x in (A, B))
                product = first.astype(np.float64) @ second
                require_finite(product, path)
                added[f"{stem.removeprefix('weights/')}/kernel"] += product / len(paths)
    for name, product in added.items():
        weights[name].assign((np.asarray(weights[name]) + product).astype(np.float32))
    return len(paths)


def require_base(path: str, model: keras.Model) -> None:
    """Checks that a model has the weights that the adapters in a checkpoint belong to.

    Raises:
        InputError: when it has others.
    """
    with broken_as_input_error(path):
        stored = int(tf.train.load_checkpoint(path).get_tensor(f"{BASE}{VALUE}"))
    if stored != checksum(model):
        raise InputError(
            f"the adapters in {path} were trained with other weights than those in the run of "
            "train.init_from now. Restore that run as it was, or train again."
        )
