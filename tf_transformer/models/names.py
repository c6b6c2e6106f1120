"""The names of a model's weights, by which checkpoints, imports and exports know them."""

import keras


def by_name(model: keras.Model) -> dict[str, keras.Variable]:
    """The weights of a built model by name, like encoder/layer_0/feed_forward/hidden/kernel.

    Two weights of one name, as the members of an ensemble have, are a `ValueError`.
    """
    weights = {weight.path.removeprefix(f"{model.path}/"): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError(
            f"the {len(model.weights)} weights of {model.name} have {len(weights)} names. Give "
            "each part of a layer a name of its own."
        )
    return weights
