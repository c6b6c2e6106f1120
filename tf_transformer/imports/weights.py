"""Weight files of other programs as NumPy arrays by name."""

import importlib.util
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf_transformer.errors import InputError

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"


def read_weights(folder: pathlib.Path) -> tuple[dict[str, np.ndarray], str]:
    """The weights in a folder of Transformers, float32 by name, and the name of their file."""
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
    instead = f" Or download {SAFETENSORS} of the model, if there is one."
    arrays = load_torch(path, instead=instead)
    if not isinstance(arrays, dict) or not all(isinstance(x, np.ndarray) for x in arrays.values()):
        raise InputError(f"{path} must hold weights by name. Download it again.")
    return arrays


def load_torch(path: pathlib.Path, classes: Sequence[type] = (), instead: str = "") -> Any:
    """Reads a file of PyTorch with its loader for weights, which runs no code of the file.

    The tensors of the content, and the tensors in its dicts, become float32 arrays. The file may
    have objects of `classes`. `instead` says in the error what to do without PyTorch.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"{path} needs PyTorch to read it: pip install torch.{instead}")
    import torch

    try:
        with torch.serialization.safe_globals(list(classes)):
            return _as_arrays(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # torch.load raises errors of many types for a broken file
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read: {reason:.200}. Download it again.") from error


def _as_arrays(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _as_arrays(value) for key, value in content.items()}
    return content.float().numpy() if hasattr(content, "numpy") else content
