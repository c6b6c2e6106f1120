"""The weights of a `Transformer` under the names of another program, in both directions."""

import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import keras
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer

_NAME = re.compile(r"(encoder|decoder)/(?:layer_(\d+)/)?(.+)/(\w+)")


class Layout(NamedTuple):
    """The names of the arrays of encoder and decoder in another program.

    In all names, {side} is encoder or decoder, {number} the number of the layer, and {kind} the
    value of `kinds`.

    Attributes:
        parts: parts of a layer, such as self_attention/output, and the names of their arrays.
        last_norm: the name of the normalization after the last layer of a pre-norm model.
        kinds: the words for kernel, bias, gamma and beta.
        first: the number of the first layer.
        is_transposed: whether matrices are (outputs, inputs), as in PyTorch. Keras' are (inputs,
            outputs).
    """

    parts: Mapping[str, tuple[str, ...]]
    last_norm: str
    kinds: Mapping[str, str]
    first: int = 0
    is_transposed: bool = True

    def names(self, name: str) -> tuple[str, ...]:
        """The names of the arrays whose columns a weight holds side by side.

        Args:
            name: the name of the weight.

        Returns:
            the names; () for embeddings and positions, which are not in the table.
        """
        if (parsed := _NAME.fullmatch(name)) is None:
            return ()
        side, number, part, kind = parsed.groups()
        names = (self.last_norm,) if number is None else self.parts[part]
        words = {"side": side, "number": int(number or 0) + self.first, "kind": self.kinds[kind]}
        return tuple(template.format(**words) for template in names)

    def fill(
        self, model: Transformer, arrays: Mapping[str, np.ndarray], path: pathlib.Path
    ) -> set[str]:
        """Assigns arrays to the weights of encoder and decoder.

        Args:
            model: the built model.
            arrays: arrays by name; other names may be among them.
            path: the file of the arrays, for errors.

        Returns:
            the names of the arrays that were assigned.

        Raises:
            InputError: for an array that is missing or has another shape.
        """
        used: set[str] = set()
        for name, weight in by_name(model).items():
            if not (names := self.names(name)):
                continue
            shape = (*weight.shape[:-1], weight.shape[-1] // len(names))
            shape = shape[::-1] if self.is_transposed else shape
            parts = [_array(arrays, part, shape, path) for part in names]
            parts = [part.T for part in parts] if self.is_transposed else parts
            weight.assign(np.concatenate(parts, axis=-1))
            used.update(names)
        return used

    def arrays(self, model: Transformer, with_biases: bool = False) -> dict[str, np.ndarray]:
        """The weights of encoder and decoder as float32 arrays by name.

        Args:
            model: the built model.
            with_biases: whether a product without a bias gets a bias of zeros.
        """
        weights = by_name(model)
        arrays: dict[str, np.ndarray] = {}
        for name, weight in weights.items():
            value = keras.ops.convert_to_numpy(weight).astype(np.float32)
            arrays |= self._divided(name, value)
            stem, _, kind = name.rpartition("/")
            if with_biases and kind == "kernel" and f"{stem}/bias" not in weights:
                arrays |= self._divided(f"{stem}/bias", np.zeros(value.shape[-1], np.float32))
        return arrays

    def _divided(self, name: str, value: np.ndarray) -> dict[str, np.ndarray]:
        if not (names := self.names(name)):
            return {}
        parts = np.split(value, len(names), axis=-1)
        parts = [part.T for part in parts] if self.is_transposed else parts
        return dict(zip(names, map(np.ascontiguousarray, parts), strict=True))


def _array(
    arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], path: pathlib.Path
) -> np.ndarray:
    if name not in arrays:
        raise InputError(f"{path}: the weights have no {name}, which the configuration needs.")
    if arrays[name].shape != shape:
        raise InputError(
            f"{path}: {name} has the shape {arrays[name].shape}, and the configuration needs "
            f"{shape}."
        )
    return arrays[name]


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
