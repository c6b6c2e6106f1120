"""A model of another program as a run: what all imports share.

The module of each format has a function `read`. It raises an `InputError` that names the file and
the key for a model that this project does not support.
"""

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports.layouts import Arrays, Layout
from tf_transformer.imports.options import read_bytes
from tf_transformer.imports.vocabulary import SpecialTokens, Vocabulary
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import save_weights
from tf_transformer.text.codec import Codec

LONGEST = 512  # tokens of a source, for programs that do not say it
# SentencePiece models in the order in which they are looked for: one file, or one for each side.
SENTENCEPIECE = (
    ("source.spm", "target.spm"),
    ("tokenizer.source.model", "tokenizer.target.model"),
    ("tokenizer.model",),
    ("sentencepiece.bpe.model",),
    ("sentencepiece.model",),
    ("spm.model",),
)
Paths = tuple[pathlib.Path, pathlib.Path]
"""A file of the source and a file of the target; the same file twice if they share it."""
Vocabularies = tuple[Vocabulary, Vocabulary]
"""The vocabularies of source and target; one object for a shared vocabulary."""


class Embeddings(NamedTuple):
    """The embeddings of another program's model, in the order of its ids, float32."""

    source: np.ndarray  # (V, D)
    target: np.ndarray  # (V, D); the same object as `source` if both share a matrix
    output: np.ndarray  # (V, D); the same object as `target` if both share a matrix

    def tying(self, codec: Codec) -> str:
        """The value of `model.tie_embeddings`."""
        if self.output is not self.target:
            return "none"
        return "all" if self.source is self.target and codec.kind != "separate" else "target"


class ForeignModel(NamedTuple):
    """What the folder of another program's model holds."""

    file: pathlib.Path  # of the weights
    arrays: Arrays
    layout: Layout  # the names of the arrays in encoder and decoder
    used: set[str]  # names of further arrays that the import has read
    embeddings: Embeddings
    vocabularies: Vocabularies
    sentencepiece: Paths  # the SentencePiece models of source and target
    options: dict[str, Any]  # fields of `ModelConfig` but for embeddings
    decode: DecodeConfig
    notes: list[str]  # what the import assumed, in lines
    languages: Mapping[str, str] = {}  # values of `data.source_language` and the other, if known
    task: TranslationOptions = TranslationOptions()


class Imported(NamedTuple):
    """A run with the model of another program."""

    config: Config
    codec: Codec
    model: Transformer  # built, with its weights
    vocabularies: Vocabularies
    notes: list[str]  # what the import assumed, in lines


def as_run(foreign: ForeignModel) -> Imported:
    """Makes a run from the content of a folder, whose arrays must fit the options."""
    tokenizers = {}
    files = zip(("source", "target"), foreign.vocabularies, foreign.sentencepiece, strict=True)
    for side, vocabulary, file in files:
        tokenizers[side] = vocabulary.tokenizer(read_bytes(file), str(file))
    is_shared = tokenizers["source"].model == tokenizers["target"].model
    codec = Codec(tokenizers["source"] if is_shared else tokenizers)
    source, target = foreign.vocabularies
    bias = foreign.arrays.get(foreign.layout.bias)
    has_bias = bias is not None or bool(target.excluded)  # the bias also excludes ids
    tying = foreign.embeddings.tying(codec)
    config = ModelConfig.of(foreign.options | {"tie_embeddings": tying, "output_bias": has_bias})
    model = Transformer(codec.size("target"), config, source_vocabulary_size=codec.size("source"))
    model.build()
    model.target_embedding.embeddings.assign(target.rows(foreign.embeddings.target))
    if model.source_embedding is not model.target_embedding:
        model.source_embedding.embeddings.assign(source.rows(foreign.embeddings.source))
    if model.output_embedding is not model.target_embedding:
        model.output_embedding.embeddings.assign(target.rows(foreign.embeddings.output))
    if config.imported.output_bias:
        size = len(foreign.embeddings.target)
        bias = np.zeros(size, np.float32) if bias is None else bias
        if bias.size != size:
            raise InputError(
                f"{foreign.file}: {foreign.layout.bias} must have {size} numbers, one for each "
                f"token, got the shape {bias.shape}."
            )
        model.output_embedding.bias.assign(target.bias(bias.reshape(size)))
    used = foreign.layout.fill(model, foreign.arrays, foreign.file) | foreign.used
    if unknown := sorted(set(foreign.arrays) - used - {foreign.layout.bias}):
        others = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise InputError(
            f"{foreign.file} has weights that the import does not understand: {unknown[0]}{others}."
            " Is it a model of another kind?"
        )
    longest = DataConfig().max_length
    unknown_languages = {"source_language": "", "target_language": ""}
    data = DataConfig(
        vocabularies=codec.kind,  # type: ignore[arg-type]
        vocabulary_size=max(codec.sizes),
        segmentation="unigram",
        normalization="nmt_nfkc",
        max_length=min(longest, config.max_length) if config.position == "learned" else 0,
        **(unknown_languages | dict(foreign.languages)),  # type: ignore[arg-type]
    )
    decode = replace(foreign.decode, average=1)  # there is one checkpoint
    run = Config(config, data, TrainConfig(), decode, foreign.task)
    return Imported(run, codec, model, foreign.vocabularies, foreign.notes)


def read_vocabularies(
    embeddings: Embeddings,
    read: Callable[[str], tuple[list[str], SpecialTokens, pathlib.Path]],
) -> Vocabularies:
    """The vocabularies of lists of tokens, which `read` gives for source and target.

    It gives the tokens, one for each row of the embeddings, the special tokens and the file.
    """
    vocabularies = []
    for side, matrix in (("source", embeddings.source), ("target", embeddings.target)):
        tokens, special, path = read(side)
        vocabularies.append(Vocabulary.of_list(tokens, len(matrix), special, str(path)))
    source, target = vocabularies
    return (target, target) if source == target else (source, target)


def find_sentencepiece(folder: pathlib.Path, given: str = "") -> Paths:
    """Finds the SentencePiece models of source and target.

    `given` is one path for both sides, or two paths with a comma between them; "": in the folder.
    """
    if given:
        paths = [pathlib.Path(path) for path in given.split(",")]
        if len(paths) > 2:
            raise InputError(f"--tokenizer takes one file or two, got {len(paths)}: {given}")
        return paths[0], paths[-1]
    for names in SENTENCEPIECE:
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return paths[0], paths[-1]
    expected = ", ".join(" and ".join(names) for names in SENTENCEPIECE)
    raise InputError(
        f"{folder} has no SentencePiece model, so texts cannot be divided into its tokens. Give "
        f"--tokenizer source.model,target.model, or put one of these into the folder: {expected}."
    )


def write(imported: Imported, run: RunFolder) -> None:
    """Writes an imported model into the folder of a run."""
    run.save_config(imported.config)
    run.save_samples([])
    imported.codec.save(run.path)
    save_weights(run, by_name(imported.model), "float32", update=0)
