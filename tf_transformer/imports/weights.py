"""Weight files of other programs as NumPy arrays by name."""

import importlib.util
import pathlib
from collections.abc import Mapping

import numpy as np

from tf_transformer.errors import InputError

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"


def read_weights(folder: pathlib.Path) -> tuple[dict[str, np.ndarray], str]:
    """Reads the weights of a folder of Transformers as float32.

    Args:
        folder: a folder with model.safetensors, or with pytorch_model.bin.

    Returns:
        the arrays by name, and the name of the file.

    Raises:
        InputError: for a missing, broken or unreadable file, and for values that are not finite.
    """
    for name, read in ((SAFETENSORS, _read_safetensors), (TORCH, _read_torch)):
        if (path := folder / name).is_file():
            arrays = read(path)
            require_finite(arrays, path)
            return arrays, name
    raise InputError(
        f"{folder} has no weights: expected {SAFETENSORS} or {TORCH}. Download one of them."
    )


def require_finite(arrays: Mapping[str, np.ndarray], path: pathlib.Path) -> None:
    """Raises an `InputError` that names the first array with NaN or infinity."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {name} has values that are not finite. Download it again.")


def _read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    import ml_dtypes  # noqa: F401  bfloat16 for NumPy
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is cut short or no safetensors file: {error}. Download it again."
        ) from error
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}


def _read_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    if importlib.util.find_spec("torch") is None:
        raise InputError(
            f"{path} needs PyTorch to read it: pip install torch. Or download {SAFETENSORS} of the "
            "model, if there is one."
        )
    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        return {name: tensor.float().numpy() for name, tensor in tensors.items()}
    except Exception as error:  # torch.load raises errors of many types for a broken file
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read: {reason:.200}. Download it again.") from error
