"""Where the arrays of another program stand in a `Transformer`."""

import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.errors import InputError


class Place(NamedTuple):
    """A variable, and the arrays whose columns it holds side by side.

    A kernel of Keras is (inputs, outputs). A matrix of PyTorch or CTranslate2 is (outputs, inputs).
    """

    variable: Any  # Keras' variable, (inputs, outputs) or (outputs,)
    names: tuple[str, ...]  # arrays, (outputs / N, inputs) or (outputs / N,)
    is_transposed: bool = True  # whether the arrays are (outputs, inputs)

    def renamed(self, name_of: Callable[[str], str], is_transposed: bool = True) -> "Place":
        """The same place for arrays with other names."""
        return Place(self.variable, tuple(map(name_of, self.names)), is_transposed)

    def fill(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Assigns the arrays to the variable.

        Raises:
            InputError: for an array that is missing or has another shape.
        """
        shape = (*self.variable.shape[:-1], self.variable.shape[-1] // len(self.names))
        shape = shape[::-1] if self.is_transposed else shape
        columns = []
        for name in self.names:
            if name not in arrays:
                raise InputError(f"the weights have no {name}, which the configuration needs.")
            if arrays[name].shape != shape:
                raise InputError(
                    f"{name} has the shape {arrays[name].shape}, and the configuration needs "
                    f"{shape}."
                )
            columns.append(arrays[name].T if self.is_transposed else arrays[name])
        self.variable.assign(np.concatenate(columns, axis=-1))

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays in the variable, by name."""
        value = np.asarray(self.variable, np.float32)
        parts = np.split(value, len(self.names), axis=-1)
        return {
            name: np.ascontiguousarray(part.T) for name, part in zip(self.names, parts, strict=True)
        }


def fill(places: Iterable[Place], arrays: Mapping[str, np.ndarray], path: pathlib.Path) -> set[str]:
    """Assigns arrays to all places, and returns the names of the arrays.

    Args:
        places: the places.
        arrays: arrays by name.
        path: the file of the arrays, for errors.

    Raises:
        InputError: for an array that is missing or has another shape.
    """
    used: set[str] = set()
    try:
        for place in places:
            place.fill(arrays)
            used.update(place.names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return used


def require_all_used(arrays: Iterable[str], used: set[str], path: pathlib.Path) -> None:
    """Raises an `InputError` that names an array that the model of this project does not have.

    Args:
        arrays: the names of all arrays.
        used: the names of the arrays that the import has read.
        path: the file of the arrays.
    """
    if unknown := sorted(set(arrays) - used):
        raise InputError(
            f"{path} has weights that the import does not understand: {unknown[0]} and "
            f"{len(unknown) - 1} more."
        )
