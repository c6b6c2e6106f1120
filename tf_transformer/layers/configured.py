"""The base class of layers that receive the configuration of their stack."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self, TypedDict

import keras

from tf_transformer.config import (
    Activation,
    DecoderAttention,
    LayerConfig,
    ModelConfig,
    Normalization,
)
from tf_transformer.errors import InputError
from tf_transformer.layers.shape import Shape

Config = LayerConfig | ModelConfig | Mapping[str, Any] | None
FIELDS = frozenset(ModelConfig.__match_args__)


class KerasOptions(TypedDict, total=False):
    """Arguments of Keras' layers."""

    name: str | None
    dtype: Any
    trainable: bool


class HeadOptions(KerasOptions, total=False):
    """The fields that every attention layer takes by name."""

    d_model: int
    num_heads: int
    key_dim: int
    value_dim: int
    num_key_value_heads: int
    attention_bias: bool
    attention_dropout_rate: float
    attention_window: int | None  # of `LocalAttention` and `StridedAttention` only


class AttentionOptions(HeadOptions, total=False):
    """The options that the constructor of self-attention takes by name; see `Attention`."""

    use_bias: bool  # attention_bias
    dropout_rate: float  # attention_dropout_rate


class FeedForwardOptions(KerasOptions, total=False):
    """The fields that a feed-forward network takes by name."""

    d_ff: int
    activation: Activation
    feed_forward_dropout_rate: float


class ResidualOptions(KerasOptions, total=False):
    """The fields that a residual connection takes by name."""

    dropout_rate: float
    norm_first: bool
    normalization: Normalization
    norm_epsilon: float


class LayerOptions(HeadOptions, FeedForwardOptions, ResidualOptions, total=False):
    """The options that the constructor of an encoder or decoder layer takes by name."""

    attention: DecoderAttention


class StackOptions(LayerOptions, total=False):
    """The options that the constructor of an encoder or decoder takes by name."""

    num_layers: int
    layer_drop_rate: float
    remat: bool


def fields_in(options: type) -> frozenset[str]:
    """The fields of `LayerConfig` among the options of a constructor."""
    return frozenset(options.__annotations__) & frozenset(LayerConfig.__match_args__)


class ConfiguredLayer(keras.layers.Layer):
    """A layer that reads its sizes and options from one `LayerConfig`.

    Args:
        config: the configuration of a stack, such as `ModelConfig().encoder`. A `ModelConfig`, or
            its fields as a dict, stands for its decoder. None: `LayerConfig()`.
        fields: values that replace fields of `config`; None keeps the value of `config`.
        **options: fields of the configuration by name, and arguments of Keras' layers, such as
            `name` and `dtype`.

    Raises:
        InputError: for a field that the layer does not read, or a value out of range.

    Attributes:
        config: the configuration of this layer's stack.
        reads: the fields of the configuration that the layer or one of its parts reads.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, config: Config = None, fields: Mapping[str, Any] | None = None, **options: Any
    ):
        named = [(name, options.pop(name)) for name in FIELDS & options.keys()]
        given = {name: x for name, x in [*named, *(fields or {}).items()] if x is not None}
        if unread := given.keys() - self.reads:
            raise InputError(
                f"{type(self).__name__} does not read {', '.join(sorted(unread))}. Leave it out; "
                f"the layer reads {', '.join(sorted(self.reads)) or 'none'}."
            )
        super().__init__(**options)
        try:
            self.config = self._configured(config, given)
        except InputError as error:
            raise InputError(f"{type(self).__name__}: {error}") from None

    @classmethod
    def _configured(cls, config: Config, given: Mapping[str, Any]) -> LayerConfig:
        if isinstance(config, LayerConfig):
            return replace(config, **given) if given else config
        if isinstance(config, ModelConfig):
            return replace(config, **given).decoder
        if config is not None:
            fields = {**config, **given} if isinstance(config, Mapping) else config
            return ModelConfig.of(fields).decoder
        heads = given.get("num_heads", LayerConfig.num_heads)
        has_size = given.get("key_dim") or given.get("d_model")
        if "key_dim" in cls.reads and not has_size and heads and LayerConfig.d_model % heads:
            raise InputError(
                f"num_heads={heads} needs key_dim, the size of a head: its default is "
                f"{LayerConfig.d_model} / num_heads, which is not an integer."
            )
        return LayerConfig(**given)

    def compute_output_shape(
        self, x_shape: Shape | None = None, *other_shapes: Shape, **named_shapes: Shape
    ) -> Shape:
        """The shape of the output, also of a layer that returns a record."""
        return x_shape or next(iter(named_shapes.values()))

    def compute_output_spec(self, *inputs: Any, **options: Any) -> Any:
        """Runs `call`, because Keras would make a single tensor of `compute_output_shape`.

        JAX cannot cut a length that it does not know into blocks. So unknown sizes get two values
        there, and a size of the output that differs is unknown.
        """
        if keras.backend.backend() != "jax":
            return keras.Operation.compute_output_spec(self, *inputs, **options)
        first, second = (
            keras.Operation.compute_output_spec(
                self, *_with_sizes(inputs, size), **_with_sizes(options, size)
            )
            for size in (83, 89)
        )
        return keras.tree.map_structure(_where_equal, first, second)

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
        makers = [vars(kind)["__init__"] for kind in cls.__mro__ if "__init__" in vars(kind)]
        arguments = {name for maker in makers for name in inspect.signature(maker).parameters}
        unread = FIELDS - cls.reads - arguments  # earlier versions saved them, too
        options = {name: value for name, value in config.items() if name not in unread}
        if isinstance(saved := options.get("config"), Mapping):
            of_layers = LayerConfig.__match_args__  # earlier versions saved those of models, too
            options["config"] = LayerConfig(**{k: saved[k] for k in of_layers if k in saved})
        return super().from_config(options)


def _with_sizes(tensors: Any, size: int) -> Any:
    """Symbolic tensors with a value for each unknown size."""

    def known(tensor: Any) -> Any:
        if not isinstance(tensor, keras.KerasTensor):
            return tensor
        shape = [size if length is None else length for length in tensor.shape]
        return keras.KerasTensor(shape, tensor.dtype)

    return keras.tree.map_structure(known, tensors)


def _where_equal(one: Any, other: Any) -> Any:
    """A symbolic tensor whose size is unknown where two tensors differ."""
    if not isinstance(one, keras.KerasTensor):
        return one
    pairs = zip(one.shape, other.shape, strict=True)
    return keras.KerasTensor([n if n == m else None for n, m in pairs], one.dtype)
