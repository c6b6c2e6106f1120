"""The base class of models whose inputs are ids, so that Keras' own methods suit them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tf_transformer.errors import InputError


def _with_weights_of_labels(method: Callable) -> Callable:
    """Makes a method of Keras refuse weights that it would give to the wrong labels."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(self: "ReadsIds", *args: Any, **options: Any) -> Any:
        given = signature.bind(self, *args, **options).arguments
        weights = given.get("sample_weight")
        is_for_rows = weights is not None and len(np.shape(weights)) != 2
        if not self.has_one_label and (given.get("class_weight") or is_for_rows):
            name = "sample_weight (batch,)" if is_for_rows else "class_weight"
            raise InputError(
                f"{name} needs one label for each row, but {type(self).__name__} has several "
                "labels in a row. Give sample_weight of the shape of the labels, (batch, length)."
            )
        return method(self, *args, **options)

    return checked


class ReadsIds(keras.Model):
    """A model whose inputs are int tensors (batch, length) of ids.

    Keras converts float inputs of a layer to the dtype `input_dtype`. When it exports a model, it
    traces the model with inputs of this dtype. So the dtype is int32 here, but the conversion is
    off: it would make ids of a user's floats without an error.
    """

    input_dtype = "int32"
    has_two_inputs: bool = False  # whether the inputs are (source, target), not one tensor
    has_one_label: bool = False  # whether each row has one label, as `class_weight` of `fit` needs

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.autocast = False
        if self.quantization_mode is not None:
            self._refuse_quantization()

    fit = _with_weights_of_labels(keras.Model.fit)
    evaluate = _with_weights_of_labels(keras.Model.evaluate)
    train_on_batch = _with_weights_of_labels(keras.Model.train_on_batch)
    test_on_batch = _with_weights_of_labels(keras.Model.test_on_batch)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **options: Any,
    ) -> None:
        """Exports the forward pass as Keras does, by default for rows of any length.

        `keras.Model.export` describes the arguments. Its own default is the length of the rows of
        the first call.
        """
        if input_signature is None:
            ids = keras.InputSpec(shape=(None, None), dtype="int32")
            input_signature = [(ids, ids) if self.has_two_inputs else ids]
        super().export(filepath, format, verbose, input_signature, **options)

    def quantize(self, mode: Any = None, config: Any = None, **options: Any) -> None:
        """Raises an `InputError`, because a file could not hold a quantized model."""
        self._refuse_quantization()

    def _refuse_quantization(self) -> None:
        raise InputError(
            f"Keras cannot quantize {type(self).__name__}, because a file could not hold it "
            "quantized. Export the run with --format ctranslate2 --quantization int8, or make the "
            "model with dtype='bfloat16'."
        )
