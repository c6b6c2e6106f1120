"""The base class of layers that receive the configuration of their stack."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import keras

from tf_transformer.config import ModelConfig

Config = ModelConfig | Mapping[str, Any] | None
FIELDS = frozenset(ModelConfig.__match_args__)


class ConfiguredLayer(keras.layers.Layer):
    """A layer that reads its sizes and options from one `ModelConfig`.

    Args:
        config: the configuration of a stack, such as `ModelConfig().encoder`, or its fields as a
            dict. If it is None, `dropout_rate` is 0 and `value_dim` is `key_dim` by default.
        **options: fields of the configuration by name, which replace fields of `config`, and
            arguments of Keras' layers, such as `name` and `dtype`.

    Attributes:
        config: the configuration of this layer's stack.
        short_names: short names of fields in this layer, and the full name of each.
    """

    short_names: ClassVar[dict[str, str]] = {}

    def __init__(self, config: Config = None, **options: Any):
        named = {self.short_names.get(name, name): value for name, value in options.items()}
        fields = {name: named.pop(name) for name in FIELDS & named.keys()}
        super().__init__(**named)
        if config is None:
            config = {"dropout_rate": 0.0, "value_dim": fields.get("key_dim") or 0}
        self.config = as_config(config, **fields).decoder

    def compute_output_shape(self, x_shape=None, *other_shapes, **named_shapes):
        return x_shape or next(iter(named_shapes.values()))

    def get_config(self):
        return super().get_config() | {"config": asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes a layer from the result of `get_config`, also of an earlier version.

        Raises:
            ValueError: if an earlier version saved attention with a pattern. Patterns are classes
                now.
        """
        pattern = config.pop("pattern", None)
        if pattern and pattern["class_name"] != "Pattern":
            raise ValueError(
                f"{cls.__name__} was saved with {pattern['class_name']}. Make a LocalAttention, "
                "StridedAttention or LinearAttention layer instead, and load its weights."
            )
        return super().from_config(config)


def as_config(config: Config, **fields: Any) -> ModelConfig:
    """Returns a configuration with new values of some fields.

    Args:
        config: the configuration, or its fields as a dict; None: the defaults.
        **fields: new values by name; None keeps the value of `config`.
    """
    fields = {name: value for name, value in fields.items() if value is not None}
    if isinstance(config, ModelConfig):
        return replace(config, **fields)
    return ModelConfig(**(dict(config or {}) | fields))
