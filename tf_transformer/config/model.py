"""The options of the model, and of the layers of one of its stacks."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tf_transformer.config.imported import TRAITS, ImportedConfig, takes_traits
from tf_transformer.config.option import (
    check,
    free,
    inherited,
    not_negative,
    positive,
    rate,
    same,
    select,
)
from tf_transformer.errors import InputError

Attention = Literal["full", "local", "strided", "linear"]
DecoderAttention = Literal[Attention, "ssru"]
Activation = Literal["relu", "gelu", "swish", "swiglu"]
Normalization = Literal["layer_norm", "rms_norm"]
Imported = Literal["sinusoidal_halves", "marian", "opennmt", "fairseq"]  # positions
Position = Literal["sinusoidal", "learned", "rotary", "relative", "t5", "alibi", "none", Imported]
SINUSOIDS = ("sinusoidal", "sinusoidal_halves", "marian", "opennmt", "fairseq")


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and variants of the layers of one stack, an encoder or a decoder.

    `ModelConfig` describes the fields; its properties `encoder` and `decoder` are records of this
    class. Zeros get their values: `key_dim` 0 becomes d_model / num_heads, `value_dim` 0 becomes
    `key_dim`, and `num_key_value_heads` 0 becomes `num_heads`.

    Example:
        >>> config = LayerConfig(d_model=12, num_heads=3)
        >>> config.key_dim, config.value_dim, config.num_key_value_heads
        (4, 4, 3)
    """

    num_layers: int = free(4, positive)
    d_model: int = free(128, positive)
    d_ff: int = free(256, positive)
    num_heads: int = free(4, positive)
    key_dim: int = free(0, not_negative)
    value_dim: int = free(0, not_negative)
    num_key_value_heads: int = free(0, not_negative)
    dropout_rate: float = free(0.0, rate)
    attention_dropout_rate: float = free(0.0, rate)
    feed_forward_dropout_rate: float = free(0.0, rate)
    layer_drop_rate: float = free(0.0, rate)
    position: Position = "sinusoidal"
    max_length: int = free(1024, positive)
    max_relative_distance: int = free(16, positive)
    attention: DecoderAttention = "full"
    attention_window: int = free(256, positive)
    activation: Activation = "relu"
    normalization: Normalization = "layer_norm"
    norm_epsilon: float = free(1e-6, positive)
    norm_first: bool = False
    attention_bias: bool = False
    remat: bool = False

    def __post_init__(self) -> None:
        check(self, "", open_to="position")
        if not self.key_dim and self.d_model % self.num_heads:
            raise InputError(
                f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads}), or "
                "key_dim must be given."
            )
        object.__setattr__(self, "key_dim", self.key_dim or self.d_model // self.num_heads)
        object.__setattr__(self, "value_dim", self.value_dim or self.key_dim)
        groups = self.num_key_value_heads or self.num_heads
        object.__setattr__(self, "num_key_value_heads", groups)
        if self.num_heads % groups:
            raise InputError(
                f"num_heads ({self.num_heads}) must be a multiple of num_key_value_heads "
                f"({groups})."
            )


@takes_traits
@dataclass(frozen=True)
class ModelConfig:
    """Sizes and variants of the Transformer (paper Table 3).

    A preset is a name for sizes and dropout: tiny, small, base or big. Give it as --model base, or
    as model: base or model: {preset: base, norm_first: true} in a YAML file. A single option
    overrides the preset, in any order.

    The properties `encoder` and `decoder` give the `LayerConfig` of one stack, with zeros replaced.

    Attributes:
        architecture: transformer, or a GRU encoder and decoder with the attention of Bahdanau
            et al. (2015) or Luong et al. (2015).
        num_layers: layers of the encoder and layers of the decoder (N).
        num_encoder_layers: layers of the encoder; 0: num_layers.
        num_decoder_layers: layers of the decoder; 0: num_layers.
        d_model: size of the embeddings and of each layer's output (D).
        d_ff: size of the hidden layer of the feed-forward network (F).
        num_heads: attention heads (H).
        key_dim: size of the queries and keys of one head (d_k); 0: d_model / num_heads.
        dropout_rate: dropout on each sub-layer's output and on the sum of embeddings and positions.
        attention_dropout_rate: dropout on the attention weights.
        feed_forward_dropout_rate: dropout on the hidden layer of the feed-forward network.
        layer_drop_rate: probability that training skips a layer (LayerDrop, Fan et al. 2020).
        num_key_value_heads: heads of keys and values; 0: num_heads. Fewer heads make the cache
            smaller (grouped-query attention); 1 is multi-query attention.
        position: encoding of positions. sinusoidal (the paper) and learned are added to the
            embeddings. rotary, relative, t5 and alibi act on the scores of self-attention. With
            none, the model sees no positions. Imported models have sines, then cosines:
            sinusoidal_halves at the paper's rates; marian at Marian's rates; opennmt and fairseq
            also at Marian's rates, from position 1 and 2 on.
        max_length: largest number of learned positions, for position learned.
        max_relative_distance: largest distance to either side that has an embedding of its own,
            for position relative. Longer distances share the embedding of this distance.
        attention: the positions that self-attention attends to. full (the paper): all positions.
            local (section 4 of the paper): the neighbourhood. strided: the neighbourhood and every
            attention_window-th position. linear: all positions, by sums in place of the softmax.
            All but full are for long sequences. Attention to the source is always full.
        decoder_attention: attention of the decoder; same: attention. With linear, the cache of a
            decoder has a constant size. So it has with ssru, a recurrent unit without attention,
            which makes decoding faster (Kim et al. 2019).
        attention_window: positions in the neighbourhood, for attention local and strided. In a
            decoder it ends at the current position. In an encoder, half of it lies on either side.
        activation: activation of the feed-forward network: relu (the paper), gelu, swish or swiglu.
            swiglu has three matrices of d_model × d_ff weights; the others have two.
        normalization: layer_norm (the paper) or rms_norm, at each sub-layer.
        tie_embeddings: embeddings that share one matrix. all (the paper): source, target and
            output. target: target and output. none: no embeddings.
        norm_first: normalize the input of each sub-layer (pre-norm). The paper normalizes the sum
            after it (post-norm).
        remat: store only the inputs of layers for the backward pass, and compute the rest again.
            Needs less memory; an update takes about a third longer.
        imported: traits of imported models.
    """

    architecture: Literal["transformer", "bahdanau", "luong"] = same("transformer")
    num_layers: int = inherited(4, positive, of_preset=True, fits_text=True, common=True)
    num_encoder_layers: int = inherited(0, not_negative)
    num_decoder_layers: int = inherited(0, not_negative)
    d_model: int = same(128, positive, of_preset=True, fits_text=True, common=True)
    d_ff: int = same(256, positive, of_preset=True, fits_text=True, common=True)
    num_heads: int = same(4, positive, of_preset=True, fits_text=True, common=True)
    key_dim: int = same(0, not_negative)
    dropout_rate: float = inherited(0.1, rate, of_preset=True, fits_text=True, common=True)
    attention_dropout_rate: float = inherited(0.0, rate)
    feed_forward_dropout_rate: float = inherited(0.0, rate)
    layer_drop_rate: float = inherited(0.0, rate)
    num_key_value_heads: int = same(0, not_negative)
    position: Position = same("sinusoidal", common=True)
    max_length: int = same(1024, positive)
    max_relative_distance: int = same(16, positive)
    attention: Attention = same("full")
    decoder_attention: Literal["same", DecoderAttention] = inherited("same")
    attention_window: int = same(256, positive)
    activation: Activation = same("relu")
    normalization: Normalization = same("layer_norm")
    tie_embeddings: Literal["all", "target", "none"] = same("all", common=True)
    norm_first: bool = same(False, common=True)
    remat: bool = inherited(False)
    imported: ImportedConfig = field(default_factory=ImportedConfig)

    def __post_init__(self) -> None:
        check(self, "model", open_to="position")
        traits = self.imported
        size, heads = traits.encoder_d_model or self.d_model, traits.encoder_num_heads
        self._check_heads("", self.d_model, self.num_heads)
        self._check_heads("imported.encoder_", size, heads or self.num_heads)
        self._check_attention()
        if self.tie_embeddings == "all" and size != self.d_model:
            raise InputError(
                f"model.imported.encoder_d_model ({size}) and model.d_model ({self.d_model}) must "
                "be equal for model.tie_embeddings=all. Use target or none."
            )
        if traits.zero_start and (self.tie_embeddings == "none" or not traits.output_bias):
            raise InputError(
                "model.imported.zero_start needs model.imported.output_bias true and "
                "model.tie_embeddings all or target, got "
                f"{str(traits.output_bias).lower()} and {self.tie_embeddings}."
            )

    def _check_heads(self, prefix: str, d_model: int, num_heads: int) -> None:
        """Checks the sizes of one stack, whose options have this prefix."""
        if d_model % num_heads and not (self.key_dim and self.imported.value_dim):
            raise InputError(
                f"model.{prefix}d_model ({d_model}) must be a multiple of "
                f"model.{prefix}num_heads ({num_heads}), or model.key_dim and "
                "model.imported.value_dim must both be given."
            )
        if self.position in SINUSOIDS and d_model % 2:
            raise InputError(
                f"model.{prefix}d_model must be even for {self.position} positions, got {d_model}."
            )
        key_dim = self.key_dim or d_model // num_heads
        if self.position == "rotary" and key_dim % 2:
            raise InputError(
                "rotary positions rotate pairs, so the size of a head must be even, but it is "
                f"{key_dim}. Set model.key_dim and model.imported.value_dim, or another "
                f"model.{prefix}num_heads ({num_heads})."
            )
        if num_heads % (self.num_key_value_heads or num_heads):
            raise InputError(
                f"model.{prefix}num_heads ({num_heads}) must be a multiple of "
                f"model.num_key_value_heads ({self.num_key_value_heads})."
            )

    def _check_attention(self) -> None:
        if not self.imported.source_end and self.architecture != "transformer":
            raise InputError(
                "model.imported.source_end=false needs model.architecture=transformer, got "
                f"{self.architecture}."
            )
        for name, default in (("attention", "full"), ("decoder_attention", "same")):
            kind, option = getattr(self, name), f"model.{name}={getattr(self, name)}"
            if kind != default and self.architecture != "transformer":
                raise InputError(
                    f"{option} is a pattern of self-attention, which "
                    f"model.architecture={self.architecture} does not have. Use {default}."
                )
            if kind in ("linear", "ssru") and self.position in ("relative", "t5", "alibi"):
                raise InputError(
                    f"{option} has no scores that model.position={self.position} could change. Use "
                    "sinusoidal, learned, rotary or none."
                )
            if kind == "linear" and self.attention_dropout_rate:
                raise InputError(
                    f"{option} has no attention weights, so model.attention_dropout_rate must be "
                    f"0, got {self.attention_dropout_rate}."
                )

    @functools.cached_property
    def encoder(self) -> LayerConfig:
        """The configuration of the encoder's layers."""
        return self._stack(
            num_layers=self.num_encoder_layers or self.num_layers,
            d_model=self.imported.encoder_d_model or self.d_model,
            d_ff=self.imported.encoder_d_ff or self.d_ff,
            num_heads=self.imported.encoder_num_heads or self.num_heads,
        )

    @functools.cached_property
    def decoder(self) -> LayerConfig:
        """The configuration of the decoder's layers."""
        is_same = self.decoder_attention == "same"
        return self._stack(
            num_layers=self.num_decoder_layers or self.num_layers,
            attention=self.attention if is_same else self.decoder_attention,
        )

    def _stack(self, **changes: Any) -> LayerConfig:
        """The fields of one stack, with those that differ from this configuration's."""
        options = vars(self) | vars(self.imported) | changes
        stack: dict[str, Any] = {name: options[name] for name in LayerConfig.__match_args__}
        stack["value_dim"] = stack["value_dim"] or stack["d_model"] // stack["num_heads"]
        return LayerConfig(**stack)

    @classmethod
    def of(cls, config: "ModelConfig | Mapping[str, Any] | None") -> "ModelConfig":
        """A configuration as it is, or one with the fields of a dict; None: the defaults."""
        if isinstance(config, ModelConfig):
            return config
        if not isinstance(config, Mapping | None):
            raise InputError(
                f"expected config as a ModelConfig or a dict, got {config!r:.80}. Give other "
                "arguments by name, like num_heads=8."
            )
        if unknown := (config or {}).keys() - set(cls.__match_args__) - TRAITS:
            raise InputError(f"a configuration has no {', '.join(sorted(unknown))}.")
        return cls(**(config or {}))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """The configuration of a named model: `tiny`, `small`, or `base` and `big` of Table 3.

        Example:
            >>> ModelConfig.preset("base", norm_first=True).d_model
            512
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise InputError(f"unknown preset {name!r}; expected one of {sorted(PRESETS)}.")
        return replace(PRESETS[name], **changes)

    @classmethod
    def preset_options(cls, name: str) -> dict[str, Any]:
        """The options that a preset's name stands for."""
        return select(cls.preset(name), lambda rules: rules.of_preset)


PRESETS = {
    "tiny": ModelConfig(),
    "small": ModelConfig(num_layers=4, d_model=256, d_ff=1024, num_heads=4, dropout_rate=0.1),
    "base": ModelConfig(num_layers=6, d_model=512, d_ff=2048, num_heads=8, dropout_rate=0.1),
    "big": ModelConfig(num_layers=6, d_model=1024, d_ff=4096, num_heads=16, dropout_rate=0.3),
}
