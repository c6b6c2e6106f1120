"""Rematerialisation: a layer's inside is computed again for the backward pass, not kept."""

import keras
from keras import KerasTensor, ops


def recomputed(layer: keras.layers.Layer, *inputs: KerasTensor | None, **options) -> KerasTensor:
    """`layer(*inputs, **options)`, of which only the inputs are kept for the backward pass.

    Memory falls from all that a layer computes to what goes into it, and an update takes one more
    forward pass (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). Dropout's
    random state goes in and comes out like any tensor, so that the second time draws what the
    first drew.

    Args:
        layer: a built layer with one output.
        *inputs: its tensors; None is passed on.
        **options: its other arguments.

    Example:
        >>> layer = keras.layers.Dropout(0.5)
        >>> recomputed(layer, np.ones((2, 3), "float32"), training=False).shape
        TensorShape([2, 3])
    """
    weights = {id(weight) for weight in layer.weights}
    state = [variable for variable in layer.variables if id(variable) not in weights]
    # A scope hides the one around it, where Keras' `fit` on JAX has the weights. TensorFlow's
    # recomputation finds gradients of variables only, not of values they are given here.
    on_tensorflow = keras.backend.backend() == "tensorflow"
    given = [] if on_tensorflow else [(weight, weight.value) for weight in layer.weights]
    # Gradients flow to these; TensorFlow's recomputation takes no boolean masks.
    floats = [i for i, tensor in enumerate(inputs) if _is_float(tensor)]

    def run(values: list[KerasTensor], *tensors: KerasTensor) -> list[KerasTensor]:
        arguments = list(inputs)
        for i, tensor in zip(floats, tensors, strict=True):
            arguments[i] = tensor
        with keras.StatelessScope([*given, *zip(state, values, strict=True)]) as scope:
            output = layer(*arguments, **options)
        return [output, *(scope.get_current_value(variable) for variable in state)]

    before = [ops.copy(variable) for variable in state]
    output, *after = keras.remat(run)(before, *(inputs[i] for i in floats))
    for variable, value in zip(state, after, strict=True):
        variable.assign(value)
    return output


def _is_float(tensor: KerasTensor | None) -> bool:
    return tensor is not None and keras.backend.is_float_dtype(tensor.dtype)
