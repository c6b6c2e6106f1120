"""A model of another program as a run: what all imports share."""

import pathlib
from typing import NamedTuple

import numpy as np

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports.vocabulary import Vocabulary
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import save_weights
from tf_transformer.text.codec import Codec

ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
LONGEST = 512  # tokens of a source, for programs that do not say it


class Imported(NamedTuple):
    """An imported model.

    Attributes:
        config: the configuration of the run.
        codec: its codec.
        model: the built model with its weights.
        vocabularies: the vocabularies of source and target.
        notes: what the import assumed, in lines.
    """

    config: Config
    codec: Codec
    model: Transformer
    vocabularies: tuple[Vocabulary, Vocabulary]
    notes: list[str]


class Embeddings(NamedTuple):
    """The embeddings of another program's model, in the order of its ids.

    Attributes:
        source: float32 array (V, D).
        target: float32 array (V, D); the same object as `source` if both share a matrix.
        output: float32 array (V, D); the same object as `target` if both share a matrix.
        bias: float32 array (V,), the bias of the logits; None: no bias.
    """

    source: np.ndarray
    target: np.ndarray
    output: np.ndarray
    bias: np.ndarray | None

    def tying(self, codec: Codec) -> str:
        """The value of `model.tie_embeddings`."""
        if self.output is not self.target:
            return "none"
        return "all" if self.source is self.target and codec.kind != "separate" else "target"

    def has_bias(self, target: Vocabulary) -> bool:
        """The value of `model.output_bias`. The bias also excludes ids; see `Vocabulary`."""
        return self.bias is not None or bool(target.excluded)


def make_model(
    config: ModelConfig,
    codec: Codec,
    vocabularies: tuple[Vocabulary, Vocabulary],
    embeddings: Embeddings,
) -> Transformer:
    """Builds a model with the given embeddings; its other weights are still random."""
    model = Transformer(codec.size("target"), config, source_vocabulary_size=codec.size("source"))
    model.build()
    source, target = vocabularies
    model.target_embedding.embeddings.assign(target.rows(embeddings.target))
    if model.source_embedding is not model.target_embedding:
        model.source_embedding.embeddings.assign(source.rows(embeddings.source))
    if model.output_embedding is not model.target_embedding:
        model.output_embedding.embeddings.assign(target.rows(embeddings.output))
    if config.output_bias:
        bias = embeddings.bias
        bias = np.zeros(len(embeddings.target), np.float32) if bias is None else bias
        model.output_embedding.bias.assign(target.bias(bias))
    return model


def make_codec(
    vocabularies: tuple[Vocabulary, Vocabulary], files: tuple[pathlib.Path, pathlib.Path]
) -> Codec:
    """The codec with the ids of two vocabularies and the pieces of two SentencePiece models.

    Raises:
        InputError: for a file that cannot be read, and as `Vocabulary.tokenizer`.
    """
    source, target = (
        vocabulary.tokenizer(read_bytes(file), str(file))
        for vocabulary, file in zip(vocabularies, files, strict=True)
    )
    return Codec(source if source.model == target.model else {"source": source, "target": target})


def run_config(
    model: ModelConfig, codec: Codec, decode: DecodeConfig, languages: dict[str, str]
) -> Config:
    """The configuration of a run with an imported model.

    Args:
        model: the configuration of the model.
        codec: the codec of the model.
        decode: the options of the search.
        languages: values of `data.source_language` and `data.target_language`, if they are known.
    """
    unknown = {"source_language": "", "target_language": ""}
    longest = DataConfig().max_length
    data = DataConfig(
        vocabularies=codec.kind,  # type: ignore[arg-type]
        vocabulary_size=max(codec.sizes),
        segmentation="unigram",
        normalization="nmt_nfkc",
        max_length=min(longest, model.max_length) if model.position == "learned" else 0,
        **(unknown | languages),  # type: ignore[arg-type]
    )
    return Config(model, data, TrainConfig(), decode, TranslationOptions())


def write(imported: Imported, run: RunFolder) -> None:
    """Writes an imported model into the folder of a run."""
    run.save_config(imported.config)
    run.save_samples([])
    imported.codec.save(run.path)
    save_weights(run, by_name(imported.model), "float32", update=0)


def read_bytes(path: pathlib.Path) -> bytes:
    """The content of a file.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
