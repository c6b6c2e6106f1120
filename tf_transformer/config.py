"""The configuration of a run: frozen dataclasses that check their values.

A run's `config.yaml` is a complete `Config`; no option changes by itself. `--help` prints the
descriptions of the attributes.
"""

import math
import numbers
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath, PathOrAddress
from tf_transformer.option import FromOrigin, free, inherited, rule_of, same
from tf_transformer.registry import options_of

# Defaults that depend on other options; the dataclass computes them.
DERIVED = {"data.max_length": 0}

LARGEST_INT = 2**31 - 1  # searches count with int32

DType = Literal["float32", "bfloat16"]
Attention = Literal["full", "local", "strided", "linear"]
Activation = Literal["relu", "gelu", "swish", "swiglu"]
Normalization = Literal["layer_norm", "rms_norm"]
Position = Literal[
    "sinusoidal",
    "learned",
    "rotary",
    "relative",
    "t5",
    "alibi",
    "none",
    "sinusoidal_halves",
    "marian",
    "opennmt",
    "fairseq",
]
SINUSOIDS = ("sinusoidal", "sinusoidal_halves", "marian", "opennmt", "fairseq")
Quantization = Literal["float32", "bfloat16", "float16", "int8", "int8_float16"]


def require_types(config: Any, open_to: str = "") -> None:
    """Checks the types of a dataclass's values.

    NumPy's numbers become Python's numbers, and a list of texts becomes a tuple. A configuration
    can then be written to a file, and has a hash.

    Args:
        config: the dataclass.
        open_to: a field that also takes texts outside its type, such as registered names.

    Raises:
        InputError: for the first field with a value of another type.
    """
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        accepted = _as_type(value, str if name == open_to else hint)
        if accepted is None:
            raise InputError(f"{_path(config, name)} must be {in_words(hint)}, got {value!r:.80}.")
        object.__setattr__(config, name, accepted)


def _as_type(value: Any, hint: Any) -> Any:
    """The value of a field with this type hint; None for a value of another type."""
    options = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return next((x for x in (_as_type(value, each) for each in options) if x is not None), None)
    if get_origin(hint) is Literal:
        return value if isinstance(value, str) and value in options else None
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(_as_type(item, options[0]) for item in value)
        return None if None in items else items
    if hint is str:
        return value if _is_text(value) else None
    if isinstance(hint, type) and (hint is bool or is_dataclass(hint)):
        return value if isinstance(value, hint) else None
    if isinstance(value, bool):
        return None  # Python counts bool as an integer
    if isinstance(value, numbers.Integral):
        return int(value)
    is_finite = isinstance(value, numbers.Real) and math.isfinite(value)
    return float(value) if hint is float and is_finite else None


def _is_text(value: Any) -> bool:
    """Whether a value is text that UTF-8 can encode."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def in_words(hint: Any) -> str:
    """The values of a field's type, in words for an error message."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(in_words(each) for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        if is_dataclass(get_args(hint)[0]):
            return "a list of corpora, like '[{source: a.en, target: a.de}, {path: b.tmx}]'"
        return "a list of text, like '[a, b]'"
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return names.get(hint, "a group of options")


def _require_positive(config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) <= 0:
            raise InputError(
                f"{_path(config, name)} must be positive, got {getattr(config, name)}."
            )


def _require_not_negative(config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 0:
            raise InputError(
                f"{_path(config, name)} must not be negative, got {getattr(config, name)}."
            )


def _require_int32(config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) > LARGEST_INT:
            raise InputError(
                f"{_path(config, name)} must be at most {LARGEST_INT:,}, got "
                f"{getattr(config, name):,}."
            )


def _require_rate(config: Any, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise InputError(
                f"{_path(config, name)} must be at least 0 and below 1, "
                f"got {getattr(config, name)}."
            )


def _path(config: Any, name: str) -> str:
    """The option as a user types it, like model.d_model."""
    if isinstance(config, TaskOptions):
        return f"task.{name}"
    if isinstance(config, AugmentConfig):
        return f"data.augment.{name}"
    if isinstance(config, LayerConfig):
        return name  # the layer that is made says that it is its own
    return f"{type(config).__name__.removesuffix('Config').lower()}.{name}".removeprefix(".")


def replaced(config: Any, options: Mapping[str, Any], of: str) -> Any:
    """A copy of a dataclass with new values for some fields.

    Args:
        config: the dataclass.
        options: new values by field; None keeps the value of the dataclass.
        of: the owner of the options, for the error message.

    Raises:
        InputError: for an unknown field, or a value out of range.
    """
    names = [field.name for field in fields(config)]
    options = {name: value for name, value in options.items() if value is not None}
    if unknown := options.keys() - set(names):
        raise InputError(
            f"unknown option {min(unknown)!r} of {of}; expected some of {', '.join(names)}."
        )
    return replace(config, **options)


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and variants of the layers of one stack, an encoder or a decoder.

    `ModelConfig` describes the fields; its properties `encoder` and `decoder` are records of this
    class. Zeros get their values: `key_dim` 0 becomes d_model / num_heads, `value_dim` 0 becomes
    `key_dim`, and `num_key_value_heads` 0 becomes `num_heads`.

    Raises:
        InputError: for a value of another type or out of range.

    Example:
        >>> config = LayerConfig(d_model=12, num_heads=3)
        >>> config.key_dim, config.value_dim, config.num_key_value_heads
        (4, 4, 3)
    """

    num_layers: int = 4
    d_model: int = 128
    d_ff: int = 256
    num_heads: int = 4
    key_dim: int = 0
    value_dim: int = 0
    num_key_value_heads: int = 0
    dropout_rate: float = 0.0
    attention_dropout_rate: float = 0.0
    feed_forward_dropout_rate: float = 0.0
    layer_drop_rate: float = 0.0
    position: Position = "sinusoidal"
    max_length: int = 1024
    max_relative_distance: int = 16
    attention: Attention = "full"
    attention_window: int = 256
    activation: Activation = "relu"
    normalization: Normalization = "layer_norm"
    norm_epsilon: float = 1e-6
    norm_first: bool = False
    attention_bias: bool = False
    remat: bool = False

    def __post_init__(self) -> None:
        require_types(self, open_to="position")
        _require_positive(self, "num_layers", "d_model", "d_ff", "num_heads", "max_length")
        _require_positive(self, "max_relative_distance", "attention_window", "norm_epsilon")
        _require_not_negative(self, "key_dim", "value_dim", "num_key_value_heads")
        _require_rate(self, "dropout_rate", "attention_dropout_rate", "feed_forward_dropout_rate")
        _require_rate(self, "layer_drop_rate")
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
        encoder_d_model: d_model of the encoder; 0: d_model. Another size needs tie_embeddings
            target or none.
        encoder_d_ff: d_ff of the encoder; 0: d_ff.
        encoder_num_heads: num_heads of the encoder; 0: num_heads.
        key_dim: size of the queries and keys of one head (d_k); 0: d_model / num_heads.
        value_dim: size of the values of one head (d_v); 0: d_model / num_heads.
        dropout_rate: dropout on each sub-layer's output and on the sum of embeddings and positions.
        attention_dropout_rate: dropout on the attention weights.
        feed_forward_dropout_rate: dropout on the hidden layer of the feed-forward network.
        layer_drop_rate: probability that training skips a layer (LayerDrop, Fan et al. 2020).
        num_key_value_heads: heads of keys and values; 0: num_heads. Fewer heads make the cache
            smaller (grouped-query attention); 1 is multi-query attention.
        position: encoding of positions. sinusoidal (the paper) and learned are added to the
            embeddings. rotary, relative, t5 and alibi act on the scores of self-attention. With
            none, the model sees no positions. The others are for imported models. They have sines,
            then cosines. sinusoidal_halves has the paper's rates, marian Marian's. opennmt and
            fairseq have Marian's rates, and their first position is 1 or 2.
        max_length: largest number of learned positions, for position learned.
        max_relative_distance: largest distance to either side that has an embedding of its own,
            for position relative. Longer distances share the embedding of this distance.
        attention: the positions that self-attention attends to. full (the paper): all positions.
            local (section 4 of the paper): the neighbourhood. strided: the neighbourhood and every
            attention_window-th position. linear: all positions, by sums in place of the softmax.
            All but full are for long sequences. Attention to the source is always full.
        decoder_attention: attention of the decoder; same: attention. With linear, the cache of a
            decoder has a constant size.
        attention_window: positions in the neighbourhood, for attention local and strided. In a
            decoder it ends at the current position. In an encoder, half of it lies on either side.
        activation: activation of the feed-forward network: relu (the paper), gelu, swish or swiglu.
            swiglu has three matrices of d_model × d_ff weights; the others have two.
        normalization: layer_norm (the paper) or rms_norm, at each sub-layer.
        norm_epsilon: ε, which normalization adds to the variance.
        tie_embeddings: embeddings that share one matrix. all (the paper): source, target and
            output. target: target and output. none: no embeddings.
        norm_first: normalize the input of each sub-layer (pre-norm). The paper normalizes the sum
            after it (post-norm).
        attention_bias: whether the projections of attention have biases.
        output_bias: whether the logits have a bias.
        zero_start: the first input of the decoder is its position alone, as in Marian. Needs
            output_bias, and tie_embeddings all or target.
        source_end: whether the encoder reads the end token of a source. Imported models of
            OpenNMT-tf do not.
        remat: store only the inputs of layers for the backward pass, and compute the rest again.
            Needs less memory; an update takes about a third longer.
    """

    architecture: Literal["transformer", "bahdanau", "luong"] = same("transformer")
    num_layers: int = same(4)
    num_encoder_layers: int = same(0)
    num_decoder_layers: int = same(0)
    d_model: int = same(128)
    d_ff: int = same(256)
    num_heads: int = same(4)
    encoder_d_model: int = same(0)
    encoder_d_ff: int = same(0)
    encoder_num_heads: int = same(0)
    key_dim: int = same(0)
    value_dim: int = same(0)
    dropout_rate: float = inherited(0.1)
    attention_dropout_rate: float = inherited(0.0)
    feed_forward_dropout_rate: float = inherited(0.0)
    layer_drop_rate: float = inherited(0.0)
    num_key_value_heads: int = same(0)
    position: Position = same("sinusoidal")
    max_length: int = same(1024)
    max_relative_distance: int = same(16)
    attention: Attention = same("full")
    decoder_attention: Literal["same", "full", "local", "strided", "linear"] = same("same")
    attention_window: int = same(256)
    activation: Activation = same("relu")
    normalization: Normalization = same("layer_norm")
    norm_epsilon: float = same(1e-6)
    tie_embeddings: Literal["all", "target", "none"] = same("all")
    norm_first: bool = same(False)
    attention_bias: bool = same(False)
    output_bias: bool = same(False)
    zero_start: bool = same(False)
    source_end: bool = same(True)
    remat: bool = inherited(False)

    def __post_init__(self) -> None:
        require_types(self, open_to="position")
        _require_positive(self, "num_layers", "d_model", "d_ff", "num_heads", "max_length")
        _require_not_negative(self, "num_encoder_layers", "num_decoder_layers", "encoder_d_model")
        _require_not_negative(self, "encoder_d_ff", "encoder_num_heads", "key_dim", "value_dim")
        _require_positive(self, "max_relative_distance", "attention_window", "norm_epsilon")
        _require_not_negative(self, "num_key_value_heads")
        _require_rate(self, "dropout_rate", "attention_dropout_rate", "feed_forward_dropout_rate")
        _require_rate(self, "layer_drop_rate")
        self._check_heads("", self.d_model, self.num_heads)
        size, heads = self.encoder_d_model or self.d_model, self.encoder_num_heads or self.num_heads
        self._check_heads("encoder_", size, heads)
        self._check_attention()
        if self.tie_embeddings == "all" and size != self.d_model:
            raise InputError(
                f"model.encoder_d_model ({self.encoder_d_model}) and model.d_model "
                f"({self.d_model}) must be equal for model.tie_embeddings=all. Use target or none."
            )
        if self.zero_start and (self.tie_embeddings == "none" or not self.output_bias):
            raise InputError(
                "model.zero_start needs model.output_bias true and model.tie_embeddings all or "
                f"target, got {str(self.output_bias).lower()} and {self.tie_embeddings}."
            )

    def _check_heads(self, prefix: str, d_model: int, num_heads: int) -> None:
        """Checks the sizes of one stack, whose options have this prefix."""
        if d_model % num_heads and not (self.key_dim and self.value_dim):
            raise InputError(
                f"model.{prefix}d_model ({d_model}) must be a multiple of "
                f"model.{prefix}num_heads ({num_heads}), or model.key_dim and model.value_dim "
                "must both be given."
            )
        if self.position in SINUSOIDS and d_model % 2:
            raise InputError(
                f"model.{prefix}d_model must be even for {self.position} positions, got {d_model}."
            )
        key_dim = self.key_dim or d_model // num_heads
        if self.position == "rotary" and key_dim % 2:
            raise InputError(
                "rotary positions rotate pairs, so the size of a head must be even, but it is "
                f"{key_dim}. Set model.key_dim and model.value_dim, or another "
                f"model.{prefix}num_heads ({num_heads})."
            )
        if num_heads % (self.num_key_value_heads or num_heads):
            raise InputError(
                f"model.{prefix}num_heads ({num_heads}) must be a multiple of "
                f"model.num_key_value_heads ({self.num_key_value_heads})."
            )

    def _check_attention(self) -> None:
        if not self.source_end and self.architecture != "transformer":
            raise InputError(
                "model.source_end=false needs model.architecture=transformer, got "
                f"{self.architecture}."
            )
        for name, default in (("attention", "full"), ("decoder_attention", "same")):
            kind, option = getattr(self, name), f"model.{name}={getattr(self, name)}"
            if kind != default and self.architecture != "transformer":
                raise InputError(
                    f"{option} is a pattern of self-attention, which "
                    f"model.architecture={self.architecture} does not have. Use {default}."
                )
            if kind == "linear" and self.position in ("relative", "t5", "alibi"):
                raise InputError(
                    f"{option} has no scores that model.position={self.position} could change. Use "
                    "sinusoidal, learned, rotary or none."
                )
            if kind == "linear" and self.attention_dropout_rate:
                raise InputError(
                    f"{option} has no attention weights, so model.attention_dropout_rate must be "
                    f"0, got {self.attention_dropout_rate}."
                )

    @property
    def encoder(self) -> LayerConfig:
        """The configuration of the encoder's layers."""
        return self._stack(
            num_layers=self.num_encoder_layers or self.num_layers,
            d_model=self.encoder_d_model or self.d_model,
            d_ff=self.encoder_d_ff or self.d_ff,
            num_heads=self.encoder_num_heads or self.num_heads,
        )

    @property
    def decoder(self) -> LayerConfig:
        """The configuration of the decoder's layers."""
        is_same = self.decoder_attention == "same"
        return self._stack(
            num_layers=self.num_decoder_layers or self.num_layers,
            attention=self.attention if is_same else self.decoder_attention,
        )

    def _stack(self, **changes: Any) -> LayerConfig:
        """The fields of one stack, with those that differ from this configuration's."""
        stack: dict[str, Any] = {name: getattr(self, name) for name in LayerConfig.__match_args__}
        stack |= changes
        size = stack["d_model"] // stack["num_heads"]
        stack |= {"key_dim": self.key_dim or size, "value_dim": self.value_dim or size}
        return LayerConfig(**stack)

    @classmethod
    def of(cls, config: "ModelConfig | Mapping[str, Any] | None") -> "ModelConfig":
        """A configuration as it is, or one with the fields of a dict; None: the defaults."""
        return config if isinstance(config, ModelConfig) else cls(**(config or {}))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """The configuration of a named model: `tiny`, `small`, or `base` and `big` of Table 3.

        Args:
            name: a key of `PRESETS`.
            **changes: new values by field.

        Raises:
            InputError: for an unknown name.

        Example:
            >>> ModelConfig.preset("base", norm_first=True).d_model
            512
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise InputError(f"unknown preset {name!r}; expected one of {sorted(PRESETS)}.")
        return replace(PRESETS[name], **changes)

    @classmethod
    def preset_options(cls, name: str) -> dict[str, Any]:
        """The options that a preset's name stands for.

        Raises:
            InputError: for an unknown name.

        Example:
            >>> ModelConfig.preset_options("base")
            {'num_layers': 6, 'd_model': 512, 'd_ff': 2048, 'num_heads': 8, 'dropout_rate': 0.1}
        """
        preset = cls.preset(name)
        return {option: getattr(preset, option) for option in OF_PRESET}


SIZES = ("num_layers", "d_model", "d_ff", "num_heads")
OF_PRESET = (*SIZES, "dropout_rate")  # options that differ between presets
# Options of a training that fit the size of its text if they are not given: training/defaults.py.
FITTING = (
    *("data.vocabulary_size", "data.batch_tokens"),
    *(f"model.{name}" for name in OF_PRESET),
    *("train.warmup_steps", "train.steps", "train.validate_every"),
)
PRESETS = {
    "tiny": ModelConfig(),
    "small": ModelConfig(num_layers=4, d_model=256, d_ff=1024, num_heads=4, dropout_rate=0.1),
    "base": ModelConfig(num_layers=6, d_model=512, d_ff=2048, num_heads=8, dropout_rate=0.1),
    "big": ModelConfig(num_layers=6, d_model=1024, d_ff=4096, num_heads=16, dropout_rate=0.3),
}


@dataclass(frozen=True)
class Corpus:
    """A corpus: two files, one file that holds both sides, a TFDS corpus, or generated text.

    Attributes:
        source: file of source sentences, one per line. Any file may be plain or compressed.
        target: file of translations; line n translates line n of source.
        path: one file that holds both sides of each example; replaces source and target.
        name: name of a corpus without a file, like wmt14_translate/de-en with format tfds.
        format: text, tsv, jsonl, tmx, tfds, generated, or the name of a registered format. Empty:
            the ending of the file decides.
        columns: the places of source and target in path. tsv: names from the first line, or
            numbers from 1 when the first line is an example; default 1 and 2. jsonl: keys;
            default source and target, or the languages of the data options. tmx: languages;
            default the languages of the data options.
        split: split of a tfds or generated corpus; empty: train.
        reverse: translate a tfds corpus from the second language of the pair to the first.
    """

    source: LocalPath = ""
    target: LocalPath = ""
    path: LocalPath = ""
    name: str = ""
    format: str = ""
    columns: tuple[str, ...] = ()
    split: str = ""
    reverse: bool = False

    def __post_init__(self) -> None:
        require_types(self)
        if bool(self.source) != bool(self.target):
            raise InputError(
                "a corpus of two files has source and target, but only "
                f"{self.source or self.target} is given. For one file with both sides give path."
            )
        if bool(self.source) + bool(self.path) + bool(self.name) > 1:
            raise InputError(
                "a corpus has source and target, path, or name; got "
                f"{', '.join(filter(None, [self.source, self.path, self.name]))}. List them as "
                "separate corpora."
            )


@dataclass(frozen=True)
class AugmentConfig:
    """Random changes of the training text, so that a model also learns unusual input.

    Each option is the share of the lines that is changed, from 0 to 1. Each epoch draws other
    lines. A line may have several changes. The changes are for translation only.

    Attributes:
        join: two to four sentences in a random order become one line. A fifth of these lines are
            one long sentence with semicolons.
        names: a name on both sides is replaced by another name, most often one with accents.
        end_mark: the last punctuation mark is left out on both sides.
        upper: both sides are in upper case.
        title: each word of both sides starts with a capital.
        lower: both sides are in lower case; with fewer than three words, only the source.
        typography: quotation marks, apostrophes, dashes and ellipses of both sides are typographic.
            Half of these lines, and all without such marks, also get quotation marks or a dash.
        typos: the source has a wrong, missing, doubled or swapped letter, or several.
        spaces: the source has a space before a mark, no space after a mark, or double spaces.
        copy: an emoji, URL, e-mail address, number, code or tag is at the same place of both sides.
    """

    join: float = free(0.0)
    names: float = free(0.0)
    end_mark: float = free(0.0)
    upper: float = free(0.0)
    title: float = free(0.0)
    lower: float = free(0.0)
    typography: float = free(0.0)
    typos: float = free(0.0)
    spaces: float = free(0.0)
    copy: float = free(0.0)

    def __post_init__(self) -> None:
        require_types(self)
        for option in fields(self):
            if not 0 <= (rate := getattr(self, option.name)) <= 1:
                raise InputError(
                    f"{_path(self, option.name)} must be from 0 to 1, the share of the lines that "
                    f"is changed, got {rate}."
                )

    def __bool__(self) -> bool:
        """Whether any text is changed."""
        return any(getattr(self, option.name) for option in fields(self))


@dataclass(frozen=True)
class DataConfig:
    """The examples, and how they become batches.

    The examples come from a list of corpora. For one corpus there are short forms: two files, one
    file, or a TFDS corpus. Without any of these, the program generates its corpus.

    Attributes:
        corpora: corpora of the training text, in this order, like [{source: a.en, target: a.de},
            {path: b.tmx}, {name: wmt14_translate/de-en, format: tfds}].
        valid_corpora: corpora of the validation text; empty: held out from the training text.
        train_source: file of source sentences, one per line. With train_target it is the short
            form of a list of one corpus.
        train_target: file of translations; line n translates line n of train_source.
        folder: folder for relative paths of text files. Empty: the working folder, then the folder
            in the environment variable TF_TRANSFORMER_DATA.
        origin: where a user can get the files; the error for a missing file says this.
        valid_source: source sentences for validation; empty: held out from the training text.
        valid_target: translations of valid_source.
        train_file: file of examples, for a task with one file; replaces train_source and
            train_target.
        valid_file: file of validation examples; empty: held out from train_file.
        tfds: a TFDS translation corpus with its language pair, like wmt14_translate/de-en, which
            translates German to English. tfds_reverse gives the other direction.
        tfds_reverse: translate from the second language of the pair to the first.
        tfds_valid_split: split of the TFDS corpus for validation, like validation; empty: held
            out from the training text.
        tfds_dir: folder of TFDS' prepared corpora; empty: the default of TFDS.
        source_language: source language of generated text, as a num2words code, and of corpora that
            name languages, like tmx. With tfds, training sets it to the language of the corpus.
        target_language: target language, like source_language. mul: each source text says its
            target language, so corpora may have different ones.
        generated_pairs: pairs in the generated training corpus.
        held_out: distinct sources whose pairs become the validation text when none is given. At
            most a tenth of the sources and a tenth of the pairs are held out.
        cache_dir: folder of tokenised text, which all runs on the same text share. Empty: a text
            of up to shard_pairs pairs stays in memory, and a longer one goes to the run's folder.
        shard_pairs: pairs in one shard of tokenised text. Memory holds only a few shards of a
            long text. Training shuffles four shards together. If a longer text is sorted by
            topic, shuffle its lines first.
        max_length: longest sentence in tokens, on either side. Training skips longer pairs; a
            language model learns longer lines in windows. 0: 256, or batch_tokens if smaller.
        vocabularies: shared: one vocabulary for all texts. separate: one for each side of a
            translation, for languages with different scripts; needs model.tie_embeddings target or
            none. joint: the same tokens on both sides, which divide their texts in different ways;
            only for imported models.
        vocabulary_size: tokens in each vocabulary. A small text may give fewer. 261: the tokens
            are bytes, and no pieces are learned.
        tokenizer: SentencePiece model of your own, in place of a learned vocabulary. With
            vocabularies separate, two with a comma between them: source.model,target.model. Its
            pieces, its symbols and its normalization stay; vocabulary_size, segmentation and
            normalization have no effect.
        segmentation: method of SentencePiece for pieces of words. bpe: byte-pair encoding (the
            paper, En-De). unigram: pieces chosen by likelihood, like word pieces (the paper,
            En-Fr).
        bpe_dropout: probability that byte-pair encoding skips a merge in training (Provilkov et al.
            2020). Each epoch has other pieces. For small corpora. The rate 0.1 makes about a fifth
            more pieces, and batches grow accordingly.
        augment: random changes of the training text, such as upper case and copied emoji.
        normalization: rules that rewrite text before it is divided into pieces. nmt_nfc: white
            space becomes a space, invisible characters are deleted, and letters are composed with
            their marks. nmt_nfkc and nfkc: rules of SentencePiece, which also rewrite characters
            such as ½. identity: no rewriting.
        batch_tokens: most source tokens, and most target tokens, in a batch. Counts padding, and
            the batches of all replicas together.
        bucket_width: a batch holds sentences of similar length. Lengths are rounded up to multiples
            of this before they are compared.
    """

    corpora: tuple[Corpus, ...] = free(())
    valid_corpora: tuple[Corpus, ...] = free(())
    train_source: LocalPath = free("")
    train_target: LocalPath = free("")
    folder: LocalPath = free("")
    origin: str = free("")
    valid_source: LocalPath = free("")
    valid_target: LocalPath = free("")
    train_file: LocalPath = free("")
    valid_file: LocalPath = free("")
    tfds: str = free("")
    tfds_reverse: bool = free(False)
    tfds_valid_split: str = free("")
    tfds_dir: PathOrAddress = free("")
    source_language: str = inherited("en")
    target_language: str = inherited("de")
    generated_pairs: int = free(40_000)
    held_out: int = free(1000)
    cache_dir: LocalPath = free("")
    shard_pairs: int = free(250_000)
    max_length: int = free(0)
    vocabularies: Literal["shared", "separate", "joint"] = same("shared")
    vocabulary_size: int = same(8000)
    tokenizer: LocalPath = free("")
    segmentation: Literal["bpe", "unigram"] = same("bpe")
    bpe_dropout: float = free(0.0)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    normalization: Literal["nmt_nfc", "nmt_nfkc", "nfkc", "identity"] = same("nmt_nfc")
    batch_tokens: int = free(2048)
    bucket_width: int = free(2)

    def __post_init__(self) -> None:
        require_types(self)
        _require_positive(
            self,
            *("generated_pairs", "held_out", "vocabulary_size", "batch_tokens", "bucket_width"),
            "shard_pairs",
        )
        _require_not_negative(self, "max_length")
        _require_rate(self, "bpe_dropout")
        if self.bpe_dropout and self.segmentation != "bpe":
            raise InputError(
                f"data.bpe_dropout needs data.segmentation bpe, got {self.segmentation}."
            )
        if not self.max_length:
            object.__setattr__(self, "max_length", min(256, self.batch_tokens))
        for one, other in (("train_source", "train_target"), ("valid_source", "valid_target")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise InputError(f"data.{one} and data.{other} must be given together.")
        self._check_corpora()
        if self.tokenizer and (self.vocabularies == "separate") != ("," in self.tokenizer):
            raise InputError(
                "data.tokenizer needs one file with data.vocabularies shared, and two files with a "
                f"comma between them with separate, got {self.tokenizer} with {self.vocabularies}."
            )
        if self.train_file and (self.train_source or self.tfds):
            raise InputError(
                "give data.train_file, data.train_source with data.train_target, or data.tfds: "
                "one of them only."
            )
        if self.valid_file and not self.train_file:
            raise InputError("data.valid_file needs data.train_file.")
        if self.valid_source and not (self.train_source or self.tfds or self.corpora):
            raise InputError("data.valid_source needs data.train_source or data.tfds.")
        if self.train_source and self.tfds:
            raise InputError(
                "give data.train_source and data.train_target, or data.tfds, not both."
            )
        if self.batch_tokens < self.max_length:
            raise InputError(
                f"data.batch_tokens ({self.batch_tokens}) must hold at least one sentence of "
                f"data.max_length ({self.max_length})."
            )

    def _check_corpora(self) -> None:
        train = (self.train_source, self.train_file, self.tfds)
        valid = (self.valid_source, self.valid_file, self.tfds_valid_split)
        if Corpus() in self.corpora + self.valid_corpora:
            raise InputError("a corpus needs source and target, path, or a name and a format.")
        if self.corpora and any(train):
            raise InputError(
                "give data.corpora, or a short form of one corpus (data.train_source and "
                "data.train_target, data.train_file, or data.tfds), not both."
            )
        if self.valid_corpora and any(valid):
            raise InputError(
                "give data.valid_corpora, or a short form of one corpus (data.valid_source and "
                "data.valid_target, data.valid_file, or data.tfds_valid_split), not both."
            )
        if self.valid_corpora and not (self.corpora or any(train)):
            raise InputError("data.valid_corpora needs data.corpora, or a short form of it.")

    @property
    def tokenizer_options(self) -> dict[str, Any]:
        """Arguments of `Tokenizer.train`, by name."""
        names = ("vocabulary_size", "segmentation", "normalization")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class TrainConfig:
    """How the model is trained (paper sections 5.3 and 5.4).

    Attributes:
        epochs: passes over the training text; ignored when steps is given.
        steps: number of updates; 0: the updates of `epochs` passes.
        warmup_steps: updates during which the learning rate rises.
        learning_rate: factor on the paper's schedule, d_model^-0.5 · min(step^-0.5, …).
        label_smoothing: share of the target probability that is spread over all tokens (ε).
        consistency: method that runs the model twice per update, for small corpora. The loss then
            includes the divergence of both predictions. r_drop: two draws of dropout. simcut: with
            all input tokens, and with some tokens hidden. An update takes about twice the time.
        consistency_weight: weight of the divergence in the loss. 0: the published weight, 5 for
            r_drop and 3 for simcut.
        cut_rate: share of the input tokens that simcut hides, on both sides.
        word_dropout: share of the input tokens that training hides, on both sides. For small
            corpora.
        accumulate: batches per update. Without dropout, N batches have the effect of one batch that
            is N times as large.
        clip_norm: largest norm of the gradient of all weights; a larger gradient is scaled down.
            0: no limit.
        precision: dtype of the computation. Weights, normalization, softmax and loss are always
            float32. auto: mixed_bfloat16 on a GPU that supports it, else float32.
        validate_every: updates in a validation interval; 0: the updates of an epoch.
        save_every: updates between checkpoints for resuming. Each validation also saves one.
        valid_score_examples: validation examples that are predicted (greedily) and scored, a
            sample of all; 0: none.
        valid_score_every: validation intervals between two scores.
        metric: metric that chooses the best weights, for patience, export_best and --average best.
            One of: loss or perplexity (of validation), a metric of the task, a registered metric,
            or module:attribute. Translation has bleu, chrf, exact_match and ter. Empty: the task
            chooses; translation takes bleu, or chrf when most references have fewer than four
            words. Empty with valid_score_examples 0: loss. Of equal scores, the lower validation
            loss wins.
        patience: stop after this many scores in a row without improvement; 0: never.
        keep_checkpoints: newest validation intervals whose weights are kept.
        average_decay: decay of the moving average of weights for --average ema, like 0.999; 0: no
            average.
        export_best: export a SavedModel whenever the score improves.
        init_from: folder of another run; training starts with its weights and tokenizer. Options of
            the model, the vocabulary, the languages, the search and the task that are not given are
            those of that run, and learning_rate is lower. Its weights are the best until an update
            has a better score.
        freeze: parts of the model whose weights stay as they are, like '[encoder, "*_embedding"]'.
        lora: rank of low-rank adapters (Hu et al. 2022), which train beside the weights of
            init_from. The run holds the adapters only, so it needs the other run. 0: train the
            weights themselves.
        max_skipped: stop after this many updates in a row with gradients that are not finite.
        strategy: devices of the training. one: one device. mirrored: all GPUs of this machine.
            multi_worker: the processes in TF_CONFIG. auto: multi_worker with TF_CONFIG, mirrored
            with several GPUs, else one.
        threads: CPU threads on a machine without a GPU; 0: one per core.
        micro_batches: parts of a batch that run in parallel on CPUs; the parts share the threads
            equally. 0: the number of threads, or 1 where that is faster. A long training on a CPU
            first measures this.
        jit_compile: compile losses and gradients with XLA. auto: a long training on a CPU first
            measures whether this is faster; other trainings do not compile.
        deterministic: use only operations that give the same bits each time; slower.
        seed: seed of weights, dropout, held-out pairs and the order of batches.
    """

    epochs: int = free(30)
    steps: int = free(0)
    warmup_steps: int = free(1000)
    learning_rate: float = free(1.0)
    label_smoothing: float = free(0.1)
    consistency: Literal["none", "r_drop", "simcut"] = free("none")
    consistency_weight: float = free(0.0)
    cut_rate: float = free(0.05)
    word_dropout: float = free(0.0)
    accumulate: int = free(1)
    clip_norm: float = free(0.0)
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = free("auto")
    validate_every: int = free(0)
    save_every: int = free(1000)
    valid_score_examples: int = free(200)
    valid_score_every: int = free(1)
    metric: str = free("")
    patience: int = free(0)
    keep_checkpoints: int = free(5)
    average_decay: float = free(0.0)
    export_best: bool = free(False)
    init_from: LocalPath = free("")
    freeze: tuple[str, ...] = free(())
    lora: int = free(0)
    max_skipped: int = free(20)
    strategy: Literal["auto", "one", "mirrored", "multi_worker"] = free("auto")
    threads: int = free(0)
    micro_batches: int = free(0)
    jit_compile: bool | Literal["auto"] = free("auto")
    deterministic: bool = free(False)
    seed: int = free(1)

    def __post_init__(self) -> None:
        require_types(self)
        _require_positive(self, "epochs", "warmup_steps", "learning_rate", "keep_checkpoints")
        if (self.freeze or self.lora) and self.average_decay:
            raise InputError(
                "train.average_decay averages all weights, and train.freeze or train.lora trains "
                "only some. Set one of them to nothing."
            )
        if self.lora and not self.init_from:
            raise InputError(
                "train.lora trains adapters of another run's model. Name that run: train.init_from."
            )
        _require_positive(self, "accumulate", "save_every", "valid_score_every", "max_skipped")
        _require_not_negative(self, "steps", "validate_every", "valid_score_examples")
        _require_not_negative(self, "clip_norm", "patience", "threads", "micro_batches", "lora")
        _require_not_negative(self, "consistency_weight")
        _require_rate(self, "label_smoothing", "average_decay", "cut_rate", "word_dropout")


@dataclass(frozen=True)
class DecodeConfig:
    """How the model makes predictions (paper section 6.1).

    The longest length counts target tokens with the end token. A prediction that reaches it without
    an end token is marked as truncated. The shortest length counts tokens of text only.

    Attributes:
        beam_size: hypotheses per sentence (W); 1: greedy search.
        length_penalty: α of ((c + length) / (c + 1))^α, which divides log-probabilities.
        length_penalty_offset: c of the length penalty. 5: the paper's penalty. 0: length^α, as
            in Transformers and Marian.
        early_stopping: the end of a sentence's beam search, as in Transformers. true: beam_size
            hypotheses are finished. false: the worst of them also scores better than the best live
            hypothesis. never: it also scores better than any continuation can.
        coverage_penalty: β of the penalty on source tokens with little attention (Wu et al. 2016,
            equation 14); 0: no penalty.
        num_hypotheses: predictions per sentence (N). A beam search gives at most beam_size.
        distinct: give only predictions with different texts. Of hypotheses with equal texts, the
            best is kept, so a sentence may have fewer than num_hypotheses.
        max_extra_length: longest output = input tokens × max_length_ratio + this. Both sides
            count the end token.
        max_length_ratio: longest output = input tokens × this + max_extra_length.
        max_length: longest output in tokens for any input, with the end token; 0: no such limit.
        min_length: shortest output in tokens, without the end token. The limits on the longest
            output come first.
        min_length_ratio: shortest output = input tokens × this. Neither side counts the end token.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice; 0: no such rule.
        repetition_penalty: factor on the log-probabilities of tokens that the prediction already
            has; 1: none.
        excluded_tokens: pieces of the vocabulary that no prediction may contain.
        target_tag: target language of an imported model for several languages, like >>por<<. An
            input that starts with a tag keeps its own. Training adds it, too.
        punctuation: kept: inputs stay as they are. opus: quotation marks, dashes, full-width forms
            and spaces become ASCII, as in the training texts of OPUS-MT's models. Also in training.
        avoid_unknown: exclude the unknown token, too.
        sampling: draw tokens at random. If false, search for the likeliest prediction.
        temperature: for sampling; below 1, likely tokens become likelier.
        top_k: for sampling; draw only from the k likeliest tokens; 0: from all.
        top_p: for sampling; draw only from the likeliest tokens that together reach this
            probability.
        seed: for sampling; equal seeds draw equal predictions for a sentence in any batch.
        max_source_length: longest input in tokens; the rest is cut off. A language model keeps the
            last tokens of a prompt, and scores long texts in windows of this size.
        trained_source_length: longest line of the training text in tokens, with the end token. A
            training sets it. The commands and the demo report a longer input. 0: unknown, no
            report.
        batch_size: most sentences in a batch.
        batch_tokens: most input tokens in a batch, with padding.
        parallel_batches: batches that run in parallel, each with one CPU thread. 1: one batch with
            all threads. 0: one batch per core. In an export: parts of a batch that run in
            parallel; 0: one part.
        average: number of the newest checkpoints whose weights are averaged. best: the checkpoint
            with the best validation score. ema: the moving average of all updates.
    """

    beam_size: int = inherited(4)
    length_penalty: float = inherited(0.6)
    length_penalty_offset: float = inherited(5.0)
    early_stopping: bool | Literal["never"] = inherited(True)
    coverage_penalty: float = inherited(0.0)
    num_hypotheses: int = inherited(1)
    distinct: bool = inherited(True)
    max_extra_length: int = inherited(50)
    max_length_ratio: float = inherited(1.0)
    max_length: int = inherited(0)
    min_length: int = inherited(0)
    min_length_ratio: float = inherited(0.0)
    no_repeat_ngram_size: int = inherited(0)
    repetition_penalty: float = inherited(1.0)
    excluded_tokens: tuple[str, ...] = inherited(())
    target_tag: str = inherited("")
    punctuation: Literal["kept", "opus"] = inherited("kept")
    avoid_unknown: bool = inherited(False)
    sampling: bool = inherited(False)
    temperature: float = inherited(1.0)
    top_k: int = inherited(0)
    top_p: float = inherited(1.0)
    seed: int = inherited(0)
    max_source_length: int = inherited(1024)
    trained_source_length: int = inherited(0)
    batch_size: int = inherited(64)
    batch_tokens: int = inherited(4096)
    parallel_batches: int = inherited(0)
    average: int | Literal["best", "ema"] = free(5)

    def __post_init__(self) -> None:
        require_types(self)
        _require_positive(self, "beam_size", "num_hypotheses", "batch_size", "batch_tokens")
        if isinstance(self.average, int):
            _require_positive(self, "average")
        _require_positive(self, "max_source_length", "max_length_ratio", "temperature")
        _require_not_negative(self, "length_penalty", "coverage_penalty", "max_extra_length")
        _require_not_negative(self, "length_penalty_offset")
        _require_not_negative(self, "max_length", "min_length", "min_length_ratio")
        _require_not_negative(self, "no_repeat_ngram_size", "top_k", "parallel_batches")
        _require_not_negative(self, "trained_source_length")
        _require_int32(self, "beam_size", "num_hypotheses", "batch_size", "batch_tokens", "top_k")
        _require_int32(self, "max_source_length", "max_extra_length", "max_length", "min_length")
        _require_int32(self, "no_repeat_ngram_size", "parallel_batches")
        if not self.sampling and self.num_hypotheses > self.beam_size:
            raise InputError(
                f"decode.num_hypotheses ({self.num_hypotheses}) must be at most "
                f"decode.beam_size ({self.beam_size}): a beam finds no more."
            )
        if self.max_length and self.min_length > self.max_length:
            raise InputError(
                f"decode.min_length ({self.min_length}) must be at most decode.max_length "
                f"({self.max_length})."
            )
        if self.min_length_ratio > self.max_length_ratio:
            raise InputError(
                f"decode.min_length_ratio ({self.min_length_ratio}) must be at most "
                f"decode.max_length_ratio ({self.max_length_ratio})."
            )
        if self.repetition_penalty < 1:
            raise InputError(
                f"decode.repetition_penalty must be at least 1, got {self.repetition_penalty}."
            )
        if not 0 < self.top_p <= 1:
            raise InputError(f"decode.top_p must be above 0 and at most 1, got {self.top_p}.")
        if self.sampling and self.coverage_penalty:
            raise InputError(
                "decode.coverage_penalty ranks the hypotheses of a beam; it has no meaning with "
                "decode.sampling. Set one of them only."
            )

    @property
    def greedy(self) -> "DecodeConfig":
        """The greedy search with the same limits and sources, for predictions in training."""
        limits = ("max_extra_length", "max_length_ratio", "max_length", "max_source_length")
        kept = (*limits, "target_tag", "punctuation")
        return DecodeConfig(beam_size=1, **{name: getattr(self, name) for name in kept})


@dataclass(frozen=True)
class TaskOptions:
    """A task and its own options; a subclass has the options as fields.

    Attributes:
        name: a registered task, or module:attribute.
        of_search: options that change only predictions. A training may resume with other values.
    """

    name: str = inherited("")

    of_search = frozenset[str]()  # an annotation would make it an option

    def __post_init__(self) -> None:
        require_types(self)


@dataclass(frozen=True)
class Config:
    """The configuration of a run, stored as `config.yaml` in its folder.

    Attributes:
        model: sizes and variants of the model.
        data: the examples, and how they become batches.
        train: how the model is trained.
        decode: how the model makes predictions.
        task: the task with its own options. The name of a task gives its defaults.

    Example:
        >>> Config(task="parsing").task.linearization
        'lexical_in_order'
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    task: TaskOptions = "translation"  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.task, str):
            object.__setattr__(self, "task", options_of(self.task)(name=self.task))
        require_types(self)
        if not self.task.name:
            raise InputError("task.name must be the name of a task, or module:attribute, got ''.")
        if self.model.position == "learned" and self.data.max_length > self.model.max_length:
            raise InputError(
                f"data.max_length ({self.data.max_length}) must be at most model.max_length "
                f"({self.model.max_length}), the number of learned positions."
            )
        if self.data.vocabularies == "separate" and self.model.tie_embeddings == "all":
            raise InputError(
                "model.tie_embeddings all needs one vocabulary for source and target, but "
                "data.vocabularies is separate. Give --model.tie_embeddings target (or none), or "
                "--data.vocabularies shared."
            )

    def differences(self, other: "Config") -> dict[str, tuple[object, object]]:
        """The options that differ, as {"model.d_model": (value here, value in `other`)}."""
        ours, theirs = _flat(self), _flat(other)
        return {
            name: (value, theirs[name])
            for name, value in ours.items()
            if name in theirs and value != theirs[name]
        }

    @property
    def from_origin(self) -> dict[str, FromOrigin]:
        """What `train.init_from` means for each option, by its name; see `option.py`."""
        return dict(_rules(self))


def _flat(config: Config) -> dict[str, object]:
    """All options by the name that a user types, like model.d_model."""
    flat = dict(_flat_items(asdict(config)))
    return {"task" if name == "task.name" else name: value for name, value in flat.items()}


def _rules(options: Any, prefix: str = "") -> Iterator[tuple[str, FromOrigin]]:
    for each in fields(options):
        value = getattr(options, each.name)
        if is_dataclass(value):
            yield from _rules(value, f"{prefix}{each.name}.")
        else:
            yield (prefix + each.name).replace("task.name", "task"), rule_of(each)


def _flat_items(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat_items(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
