"""The names of a model's weights, by which checkpoints, imports and exports know them."""

import keras


def by_name(model: keras.Model) -> dict[str, keras.Variable]:
    """The weights of a built model by name, like encoder/layer_0/feed_forward/hidden/kernel.

    Args:
        model: the model; not an ensemble, whose models have equal names.

    Raises:
        ValueError: for two weights of one name.

    Example:
        >>> from tf_transformer import Transformer
        >>> model = Transformer(vocabulary_size=11)
        >>> model.build()
        >>> tuple(by_name(model)["encoder/layer_0/feed_forward/hidden/kernel"].shape)
        (128, 256)
    """
    weights = {weight.path.removeprefix(f"{model.path}/"): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError(
            f"the {len(model.weights)} weights of {model.name} have {len(weights)} names. Give "
            "each part of a layer a name of its own."
        )
    return weights
