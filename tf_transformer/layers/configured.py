"""The base class of layers that receive the configuration of their stack."""

import inspect
from collections.abc import Mapping, Set
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import keras

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.shape import Shape

Config = ModelConfig | Mapping[str, Any] | None
FIELDS = frozenset(ModelConfig.__match_args__)


class ConfiguredLayer(keras.layers.Layer):
    """A layer that reads its sizes and options from one `ModelConfig`.

    Args:
        config: the configuration of a stack, such as `ModelConfig().encoder`, or its fields as a
            dict. If it is None, `dropout_rate` is 0 and `value_dim` is `key_dim` by default.
        **options: fields of the configuration by name, which replace fields of `config`, and
            arguments of Keras' layers, such as `name` and `dtype`. Only fields in `reads` may be
            given by name.

    Raises:
        InputError: for a field that the layer does not read, or a value out of range.

    Attributes:
        config: the configuration of this layer's stack.
        reads: the fields of the configuration that the layer or one of its parts reads.
        short_names: short names of fields in this layer, and the full name of each.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    short_names: ClassVar[dict[str, str]] = {}

    def __init__(self, config: Config = None, **options: Any):
        named = {self.short_names.get(name, name): value for name, value in options.items()}
        fields = {name: named.pop(name) for name in FIELDS & named.keys()}
        self._require_read(fields.keys())
        super().__init__(**named)
        if config is None:
            config = self._defaults(fields)
        self.config = as_config(config, **fields).decoder

    @classmethod
    def _require_read(cls, fields: Set[str]) -> None:
        if unread := fields - cls.reads:
            short = {name: f" (short: {short})" for short, name in cls.short_names.items()}
            reads = ", ".join(name + short.get(name, "") for name in sorted(cls.reads))
            raise InputError(
                f"{cls.__name__} does not read {', '.join(sorted(unread))}. Leave it out; the "
                f"layer reads {reads}."
            )

    @classmethod
    def _defaults(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration of a layer without a stack, to which `fields` are added."""
        heads = fields.get("num_heads") or ModelConfig.num_heads
        has_size = fields.get("key_dim") or fields.get("d_model")
        if "key_dim" in cls.reads and not has_size and ModelConfig.d_model % heads:
            raise InputError(
                f"{cls.__name__} with num_heads={heads} needs key_dim, the size of a head: its "
                f"default is {ModelConfig.d_model} / num_heads, which is not an integer."
            )
        # No layer reads `position`. With none, the check of sinusoids does not concern `d_model`.
        return {"dropout_rate": 0.0, "value_dim": fields.get("key_dim") or 0, "position": "none"}

    def compute_output_shape(
        self, x_shape: Shape | None = None, *other_shapes: Shape, **named_shapes: Shape
    ) -> Shape:
        return x_shape or next(iter(named_shapes.values()))

    def get_config(self) -> dict[str, Any]:
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
        arguments = inspect.signature(cls.__init__).parameters.keys() | cls.short_names.keys()
        unread = FIELDS - cls.reads - arguments  # earlier versions saved them, too
        return super().from_config({k: v for k, v in config.items() if k not in unread})


def read_by(*layers: type[ConfiguredLayer]) -> frozenset[str]:
    """The fields of the configuration that at least one of the layers reads."""
    return frozenset().union(*(layer.reads for layer in layers))


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
