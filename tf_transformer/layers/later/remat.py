"""Rematerialization: the backward pass computes the inside of a layer again to save memory."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import KerasTensor, ops, tree


def recomputed(
    layer: keras.layers.Layer, position: keras.layers.Layer | None
) -> Callable[..., Any]:
    """A layer as a function whose inside the backward pass computes again; see `recompute`."""
    layers = [layer] if position is None else [layer, position]  # whose weights the call uses
    return functools.partial(recompute, layers, layer.call)


def recompute(
    layers: Sequence[keras.layers.Layer], function: Callable, *inputs: Any, **options: Any
) -> Any:
    """Runs `function(*inputs, **options)` and keeps only the inputs for the backward pass.

    A layer then holds its inputs in place of all intermediate results. An update takes one more
    forward pass (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). The random
    state of dropout is an input and an output, so the second pass draws the same numbers.

    Args:
        layers: the built layers whose weights `function` uses.
        function: a method of a layer. It returns a tensor, or a nest whose first leaf is the
            output. Gradients flow through the first leaf only.
        *inputs: tensors, nests of tensors, or None.
        **options: other arguments of `function`.
    """
    weights = [weight for layer in layers for weight in layer.weights]
    known = {id(weight) for weight in weights}
    variables = [variable for layer in layers for variable in layer.variables]
    state = [variable for variable in variables if id(variable) not in known]
    # A scope hides the scope around it, where Keras' `fit` on JAX keeps the weights. So the inner
    # scope needs the weights. On TensorFlow they must stay variables: its recomputation finds no
    # gradients of a scope's values.
    on_tensorflow = keras.backend.backend() == "tensorflow"
    fixed = [] if on_tensorflow else [(weight, weight.value) for weight in weights]
    leaves = tree.flatten(inputs)
    # Gradients flow to float tensors; TensorFlow's recomputation refuses boolean masks.
    floats = [
        i
        for i, leaf in enumerate(leaves)
        if leaf is not None and keras.backend.is_float_dtype(leaf.dtype)
    ]

    def run(values: list[KerasTensor], *tensors: KerasTensor) -> tuple[Any, list[KerasTensor]]:
        arguments = list(leaves)
        for i, tensor in zip(floats, tensors, strict=True):
            arguments[i] = tensor
        with keras.StatelessScope([*fixed, *zip(state, values, strict=True)]) as scope:
            result = function(*tree.pack_sequence_as(inputs, arguments), **options)
        output, *others = tree.flatten(result)
        kept = [output, *map(ops.stop_gradient, others)]
        after = [scope.get_current_value(variable) for variable in state]
        return tree.pack_sequence_as(result, kept), after

    before = [ops.copy(variable) for variable in state]
    result, after = keras.remat(run)(before, *(leaves[i] for i in floats))
    for variable, value in zip(state, after, strict=True):
        variable.assign(value)
    return result
