"""Configuration: frozen dataclasses, one a concern, checked when they are made.

A run's `config.yaml` is a `Config` written out in full; nothing is filled in later and nothing
adjusts itself. Field comments are the documentation: `python train.py --help` prints them.
"""

import os
import pathlib
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, NamedTuple

import jsonargparse
import yaml

from tf_transformer.errors import InputError
from tf_transformer.files import write_whole

FILE_NAME = "config.yaml"

DType = Literal["float32", "bfloat16"]
Quantization = Literal["float32", "bfloat16", "float16", "int8", "int8_float16"]


def _require_positive(config, *names: str) -> None:
    for name in names:
        if getattr(config, name) <= 0:
            raise InputError(
                f"{_path(config, name)} must be positive, got {getattr(config, name)}."
            )


def _require_not_negative(config, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 0:
            raise InputError(
                f"{_path(config, name)} must not be negative, got {getattr(config, name)}."
            )


def _require_rate(config, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise InputError(
                f"{_path(config, name)} must be at least 0 and below 1, "
                f"got {getattr(config, name)}."
            )


def _path(config, name: str) -> str:
    """The option as a user types it, like model.d_model."""
    return f"{type(config).__name__.removesuffix('Config').lower()}.{name}"


class StackConfig(NamedTuple):
    """Sizes of an encoder or a decoder."""

    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    key_dim: int  # of a head's queries and keys
    value_dim: int  # of a head's values


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and variants of the Transformer (paper Table 3).

    Attributes:
        num_layers: encoder layers and decoder layers, each (N).
        num_encoder_layers: encoder layers; 0: num_layers.
        num_decoder_layers: decoder layers; 0: num_layers.
        d_model: size of embeddings and of every layer's output (D).
        d_ff: size of the feed-forward hidden layer (F).
        num_heads: attention heads (H).
        encoder_d_model: d_model of the encoder; 0: d_model. Another size needs tie_embeddings
            target or none.
        encoder_d_ff: d_ff of the encoder; 0: d_ff.
        encoder_num_heads: num_heads of the encoder; 0: num_heads.
        key_dim: size of a head's queries and keys (d_k); 0: d_model / num_heads.
        value_dim: size of a head's values (d_v); 0: d_model / num_heads.
        dropout_rate: on each sub-layer's output and on the sums of embeddings and positions.
        attention_dropout_rate: on attention weights.
        feed_forward_dropout_rate: inside the feed-forward network.
        position: how positions are encoded.
        max_length: size of the learned position table; sinusoids ignore it.
        tie_embeddings: which embedding matrices are one: source, target and output (the paper);
            target and output; or none.
        norm_first: pre-norm instead of the paper's post-norm.
        attention_bias: whether attention projections have biases.
        remat: keep only what goes into each layer for the backward pass, and compute the rest
            again: less memory, a third more time.
    """

    num_layers: int = 4
    num_encoder_layers: int = 0
    num_decoder_layers: int = 0
    d_model: int = 128
    d_ff: int = 256
    num_heads: int = 4
    encoder_d_model: int = 0
    encoder_d_ff: int = 0
    encoder_num_heads: int = 0
    key_dim: int = 0
    value_dim: int = 0
    dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.0
    feed_forward_dropout_rate: float = 0.0
    position: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_length: int = 1024
    tie_embeddings: Literal["all", "target", "none"] = "all"
    norm_first: bool = False
    attention_bias: bool = False
    remat: bool = False

    def __post_init__(self):
        _require_positive(self, "num_layers", "d_model", "d_ff", "num_heads", "max_length")
        _require_not_negative(self, "num_encoder_layers", "num_decoder_layers", "encoder_d_model")
        _require_not_negative(self, "encoder_d_ff", "encoder_num_heads", "key_dim", "value_dim")
        _require_rate(self, "dropout_rate", "attention_dropout_rate", "feed_forward_dropout_rate")
        for prefix, stack in (("encoder_", self.encoder), ("", self.decoder)):
            if stack.d_model % stack.num_heads and not (self.key_dim and self.value_dim):
                raise InputError(
                    f"model.{prefix}d_model ({stack.d_model}) must be a multiple of "
                    f"model.{prefix}num_heads ({stack.num_heads}), or model.key_dim and "
                    "model.value_dim must both be given."
                )
            if self.position == "sinusoidal" and stack.d_model % 2:
                raise InputError(
                    f"model.{prefix}d_model must be even for sinusoidal positions, "
                    f"got {stack.d_model}."
                )
        if self.tie_embeddings == "all" and self.encoder.d_model != self.d_model:
            raise InputError(
                f"model.encoder_d_model ({self.encoder_d_model}) and model.d_model "
                f"({self.d_model}) must be equal for model.tie_embeddings=all. Use target or none."
            )

    @property
    def encoder(self) -> "StackConfig":
        """The encoder's sizes with the defaults computed."""
        return self._stack(
            self.num_encoder_layers or self.num_layers,
            self.encoder_d_model or self.d_model,
            self.encoder_d_ff or self.d_ff,
            self.encoder_num_heads or self.num_heads,
        )

    @property
    def decoder(self) -> "StackConfig":
        """The decoder's sizes with the defaults computed."""
        num_layers = self.num_decoder_layers or self.num_layers
        return self._stack(num_layers, self.d_model, self.d_ff, self.num_heads)

    def _stack(self, num_layers: int, d_model: int, d_ff: int, num_heads: int) -> "StackConfig":
        size = d_model // num_heads
        key_dim, value_dim = self.key_dim or size, self.value_dim or size
        return StackConfig(num_layers, d_model, d_ff, num_heads, key_dim, value_dim)

    @classmethod
    def preset(cls, name: str, **changes) -> "ModelConfig":
        """A named model: `tiny`, or `base` and `big` of the paper's Table 3.

        Args:
            name: one of `PRESETS`.
            **changes: fields to replace.

        Raises:
            InputError: for an unknown name.

        Example:
            >>> ModelConfig.preset("base", norm_first=True).d_model
            512
        """
        if name not in PRESETS:
            raise InputError(f"unknown preset {name!r}; expected one of {sorted(PRESETS)}.")
        return replace(PRESETS[name], **changes)


PRESETS = {
    "tiny": ModelConfig(),
    "base": ModelConfig(num_layers=6, d_model=512, d_ff=2048, num_heads=8, dropout_rate=0.1),
    "big": ModelConfig(num_layers=6, d_model=1024, d_ff=4096, num_heads=16, dropout_rate=0.3),
}


@dataclass(frozen=True)
class DataConfig:
    """Where the pairs come from and how they become batches.

    Two files, else a TFDS corpus, else the generated corpus.

    Attributes:
        train_source: source side of the training text, a line a sentence; plain or .gz.
        train_target: target side; line n translates line n of train_source.
        valid_source: validation text; held out from the training text when not given.
        valid_target: its translation.
        tfds: a TFDS translation corpus and its language pair, like wmt14_translate/de-en
            (from German to English); for the reverse direction set tfds_reverse.
        tfds_reverse: translate from the second language of the pair to the first.
        tfds_valid_split: its split to validate on, like validation; held out of the training
            text when empty.
        tfds_dir: where TFDS keeps prepared corpora; its own default when empty.
        source_language: language of the generated corpus' source (a num2words code).
        target_language: language of its target.
        generated_pairs: size of the generated training corpus.
        held_out: validation pairs held out of the training text when no validation is given,
            but at most a tenth of it.
        cache_dir: where tokenised text is kept, for other runs on the same text to find. When
            empty, a text of up to shard_pairs pairs is kept in memory and a longer one in the
            run's folder.
        shard_pairs: pairs in a shard of tokenised text. Memory holds a few shards however long
            the text. An epoch goes through four shards at a time, so shuffle the lines of a
            text that is sorted by topic and has more pairs than that.
        max_length: longest sentence in tokens, on either side; longer pairs are skipped.
        vocabulary_size: tokens in the shared vocabulary; fewer when the text has too little.
        normalization: what the tokenizer does to text first (a SentencePiece rule).
        batch_tokens: room for source tokens, and for target tokens, in a batch (all replicas).
        bucket_width: sentence lengths are rounded up to multiples of this to form batches.
    """

    train_source: str = ""
    train_target: str = ""
    valid_source: str = ""
    valid_target: str = ""
    tfds: str = ""
    tfds_reverse: bool = False
    tfds_valid_split: str = ""
    tfds_dir: str = ""
    source_language: str = "en"
    target_language: str = "de"
    generated_pairs: int = 40_000
    held_out: int = 1000
    cache_dir: str = ""
    shard_pairs: int = 250_000
    max_length: int = 256
    vocabulary_size: int = 8000
    normalization: Literal["identity", "nfkc", "nmt_nfkc"] = "identity"
    batch_tokens: int = 2048
    bucket_width: int = 2

    def __post_init__(self):
        _require_positive(
            self,
            *("generated_pairs", "held_out", "max_length", "vocabulary_size"),
            *("batch_tokens", "bucket_width", "shard_pairs"),
        )
        for one, other in (("train_source", "train_target"), ("valid_source", "valid_target")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise InputError(f"data.{one} and data.{other} must be given together.")
        if self.valid_source and not (self.train_source or self.tfds):
            raise InputError("data.valid_source needs data.train_source or data.tfds.")
        if self.train_source and self.tfds:
            raise InputError(
                "give data.train_source and data.train_target, or data.tfds, not both."
            )
        if self.batch_tokens < self.max_length:
            raise InputError(
                f"data.batch_tokens ({self.batch_tokens}) must leave room for one sentence of "
                f"data.max_length ({self.max_length})."
            )


@dataclass(frozen=True)
class TrainConfig:
    """How the model is trained (paper sections 5.3 and 5.4).

    Attributes:
        epochs: passes over the training text; ignored when steps is given.
        steps: updates in all; 0: as many as `epochs` passes take.
        warmup_steps: updates over which the learning rate rises.
        learning_rate: factor on the paper's schedule, d_model^-0.5 · min(step^-0.5, …).
        label_smoothing: weight of the uniform distribution in the target distribution.
        accumulate: batches whose gradients make one update; N batches are one N times as big.
        clip_norm: gradients of a larger norm, over all weights, are scaled down to it; 0: never.
        precision: what is computed in; weights, norms, softmax and loss are float32 always. auto:
            mixed_bfloat16 on a GPU that has it, else float32.
        validate_every: updates between validations; a round is what lies between. 0: once a pass.
        save_every: updates between checkpoints to go on from, besides one after each round.
        valid_bleu_sentences: validation sentences translated (greedily) for BLEU; 0: none.
        valid_bleu_every: rounds between such translations.
        patience: stop after this many scores in a row that are no better; 0: never. The score is
            BLEU, or the validation loss where valid_bleu_sentences is 0.
        keep_checkpoints: of how many of the newest rounds weights are kept.
        average_decay: keep a moving average of weights, for --average ema; like 0.999; 0: none.
        export_best: export a SavedModel whenever a score is better than all before.
        init_from: folder of a run whose weights and tokenizer this one starts with.
        max_skipped: stop when so many updates in a row had gradients that are not finite.
        strategy: one device; all GPUs of this machine (mirrored); the processes of TF_CONFIG
            (multi_worker); auto: the most of these that is there.
        threads: how many train where there is no GPU, each with its share of a batch's rows (with
            jit_compile: of each operation); 0: one a core.
        jit_compile: compile losses and gradients of training with XLA.
        deterministic: only operations that give the same bits every time; slower.
        seed: of weights, dropout, held-out pairs and the order of batches.
    """

    epochs: int = 30
    steps: int = 0
    warmup_steps: int = 1000
    learning_rate: float = 1.0
    label_smoothing: float = 0.1
    accumulate: int = 1
    clip_norm: float = 0.0
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "auto"
    validate_every: int = 0
    save_every: int = 1000
    valid_bleu_sentences: int = 200
    valid_bleu_every: int = 1
    patience: int = 0
    keep_checkpoints: int = 5
    average_decay: float = 0.0
    export_best: bool = False
    init_from: str = ""
    max_skipped: int = 20
    strategy: Literal["auto", "one", "mirrored", "multi_worker"] = "auto"
    threads: int = 0
    jit_compile: bool = False
    deterministic: bool = False
    seed: int = 1

    def __post_init__(self):
        _require_positive(self, "epochs", "warmup_steps", "learning_rate", "keep_checkpoints")
        _require_positive(self, "accumulate", "save_every", "valid_bleu_every", "max_skipped")
        _require_not_negative(self, "steps", "validate_every", "valid_bleu_sentences")
        _require_not_negative(self, "clip_norm", "patience", "threads")
        _require_rate(self, "label_smoothing", "average_decay")


@dataclass(frozen=True)
class DecodeConfig:
    """How translations are searched for (paper section 6.1).

    Lengths count target tokens with the end token.

    Attributes:
        beam_size: hypotheses kept a sentence (W); 1: greedy.
        length_penalty: α of ((5 + length) / 6)^α, which divides log-probabilities.
        coverage_penalty: β of the penalty on source tokens that got little attention (Wu et al.
            2016, equation 14); 0: none.
        num_hypotheses: translations given a sentence (N), at most the beam unless sampling.
        max_extra_length: longest translation: source tokens · max_length_ratio + this.
        max_length_ratio: see max_extra_length.
        max_length: longest translation whatever the source; 0: no such limit.
        min_length: shortest translation.
        min_length_ratio: shortest translation: source tokens times this.
        no_repeat_ngram_size: no sequence of so many tokens comes twice; 0: any may.
        repetition_penalty: multiplies log-probabilities of tokens a translation holds already.
        excluded_tokens: pieces of the vocabulary that no translation may hold.
        avoid_unknown: whether the unknown token is one of them.
        sampling: draw tokens at random instead of searching for the likeliest.
        temperature: for sampling; below 1 likely tokens become likelier.
        top_k: for sampling; draw from this many of the likeliest tokens only; 0: all.
        top_p: for sampling; draw from the likeliest tokens that reach this probability only.
        seed: for sampling; equal seeds draw equal translations of a sentence, whatever its batch.
        max_source_length: longest source in tokens; what is beyond is cut off.
        batch_size: sentences translated at once, at most.
        batch_tokens: source tokens translated at once, at most, padding counted.
        average: which weights: the mean of so many of the newest checkpoints; best: those with the
            best score in training; ema: the moving average of all updates.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    coverage_penalty: float = 0.0
    num_hypotheses: int = 1
    max_extra_length: int = 50
    max_length_ratio: float = 1.0
    max_length: int = 0
    min_length: int = 0
    min_length_ratio: float = 0.0
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    excluded_tokens: tuple[str, ...] = ()
    avoid_unknown: bool = False
    sampling: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_source_length: int = 1024
    batch_size: int = 64
    batch_tokens: int = 4096
    average: int | Literal["best", "ema"] = 5

    def __post_init__(self):
        _require_positive(self, "beam_size", "num_hypotheses", "batch_size", "batch_tokens")
        if isinstance(self.average, int):
            _require_positive(self, "average")
        _require_positive(self, "max_source_length", "max_length_ratio", "temperature")
        _require_not_negative(self, "length_penalty", "coverage_penalty", "max_extra_length")
        _require_not_negative(self, "max_length", "min_length", "min_length_ratio")
        _require_not_negative(self, "no_repeat_ngram_size", "top_k")
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


@dataclass(frozen=True)
class Config:
    """A whole run. `config.yaml` in a run's folder is one of these."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)

    def __post_init__(self):
        if self.model.position == "learned" and self.data.max_length > self.model.max_length:
            raise InputError(
                f"data.max_length ({self.data.max_length}) is beyond the learned position table "
                f"(model.max_length {self.model.max_length})."
            )

    def save(self, run_dir: str | os.PathLike) -> None:
        """Writes `config.yaml` into a run's folder, whole or not at all."""
        text = yaml.safe_dump(asdict(self), sort_keys=False)
        write_whole(pathlib.Path(run_dir) / FILE_NAME, text)

    @classmethod
    def load(cls, run_dir: str | os.PathLike) -> "Config":
        """Reads the `config.yaml` of a run's folder.

        Raises:
            InputError: when there is none, or it has an unknown key or a bad value.
        """
        path = pathlib.Path(run_dir) / FILE_NAME
        if not path.is_file():
            raise InputError(
                f"{run_dir} is not a run's folder: it has no {FILE_NAME}. Check the path, or "
                f"train first: python train.py --run_dir {run_dir}"
            )
        parser = jsonargparse.ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(cls)
        try:
            return cls(**parser.instantiate(parser.parse_path(path)).as_dict())
        except (jsonargparse.ArgumentError, yaml.YAMLError) as error:
            raise InputError(f"{path}: {error}") from error

    def differences(self, other: "Config") -> dict[str, tuple[object, object]]:
        """Fields that differ, as {"model.d_model": (mine, other's)}."""
        mine, others = asdict(self), asdict(other)
        return {
            f"{part}.{name}": (value, others[part][name])
            for part, fields in mine.items()
            for name, value in fields.items()
            if value != others[part][name]
        }
