"""The traits of imported models, a group of options of the model."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tf_transformer.config.option import check, not_negative, positive, same

T = TypeVar("T")


@dataclass(frozen=True)
class ImportedConfig:
    """Traits of imported models. `tf-transformer import` sets them.

    A model of your own rarely needs them. `model.imported.` may be shortened to `model.`, as in
    --model.value_dim.

    Attributes:
        encoder_d_model: d_model of the encoder; 0: d_model. Another size needs tie_embeddings
            target or none.
        encoder_d_ff: d_ff of the encoder; 0: d_ff.
        encoder_num_heads: num_heads of the encoder; 0: num_heads.
        value_dim: size of the values of one head (d_v); 0: d_model / num_heads.
        norm_epsilon: ε, which normalization adds to the variance.
        attention_bias: whether the projections of attention have biases.
        output_bias: whether the logits have a bias.
        zero_start: the first input of the decoder is its position alone, as in Marian. Needs
            output_bias, and tie_embeddings all or target.
        source_end: whether the encoder reads the end token of a source. Imported models of
            OpenNMT-tf do not.
    """

    encoder_d_model: int = same(0, not_negative)
    encoder_d_ff: int = same(0, not_negative)
    encoder_num_heads: int = same(0, not_negative)
    value_dim: int = same(0, not_negative)
    norm_epsilon: float = same(1e-6, positive)
    attention_bias: bool = same(False)
    output_bias: bool = same(False)
    zero_start: bool = same(False)
    source_end: bool = same(True)

    def __post_init__(self) -> None:
        check(self, "model.imported")


TRAITS = frozenset(ImportedConfig.__match_args__)


def with_record(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a model by name, with its traits in the group `imported`.

    The traits may also stand beside the group. Earlier versions had them there.
    """
    traits = {name: value for name, value in options.items() if name in TRAITS}
    group = options.get("imported", {})
    group = vars(group) if isinstance(group, ImportedConfig) else group
    if not traits or not isinstance(group, Mapping):
        return dict(options)
    others = {name: value for name, value in options.items() if name not in TRAITS}
    return others | {"imported": {**group, **traits}}


def takes_traits(config: type[T]) -> type[T]:
    """Lets the constructor of a dataclass take its record `imported` as `with_record` does."""
    init = config.__init__

    @functools.wraps(init)
    def with_traits(self: T, *args: Any, **options: Any) -> None:
        options = with_record(options)
        if isinstance(traits := options.get("imported"), Mapping):
            options["imported"] = ImportedConfig(**traits)
        init(self, *args, **options)

    config.__init__ = with_traits  # type: ignore[assignment, method-assign]
    return config
