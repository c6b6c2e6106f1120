"""A Transformer in a folder of CTranslate2, as a run.

The folder has model.bin, config.json, and shared_vocabulary.json, or source_vocabulary.json and
target_vocabulary.json; older folders have .txt files. Sources: `specs/` and `src/` of CTranslate2
4.8.
"""

import pathlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.config.option import select
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports.ctranslate2_file import ModelFile, read_model_file
from tf_transformer.imports.ctranslate2_model import assign_positions, model_options, used_names
from tf_transformer.imports.imported import (
    LONGEST,
    Embeddings,
    Imported,
    make_codec,
    make_model,
    run_config,
)
from tf_transformer.imports.layout import require_all_used
from tf_transformer.imports.layouts import ctranslate2
from tf_transformer.imports.options import decimal, read_json, read_lines, without_effect
from tf_transformer.imports.sentencepiece_models import sentencepiece_models
from tf_transformer.imports.vocabulary import SpecialTokens, Vocabulary

KINDS = ("TransformerSpec", "TransformerBase", "TransformerBig")
# Keys of config.json, with the value that older folders without the file have.
OPTIONS: dict[str, Any] = {
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "decoder_start_token": "<s>",
    "add_source_bos": False,
    "add_source_eos": False,
    "layer_norm_epsilon": None,
    "multi_query_attention": False,
}


def read(folder: pathlib.Path, tokenizer: str = "") -> Imported:
    """Reads a folder.

    Args:
        folder: a folder with model.bin.
        tokenizer: SentencePiece models, for a folder without them; see `sentencepiece_models`.

    Raises:
        InputError: for a folder that has no such model, or a model that this project does not
            support. The message names the file and the key.
    """
    path = folder / "model.bin"
    file = read_model_file(path)
    if file.kind not in KINDS:
        raise InputError(f"{path} is a {file.kind}. Only a {KINDS[0]} can be a run.")
    options, notes = _options(folder, file)
    embeddings = _embeddings(file.arrays, path)
    vocabularies = _vocabularies(folder, file, options, embeddings)
    codec = make_codec(vocabularies, sentencepiece_models(folder, tokenizer))
    config = ModelConfig(
        **model_options(file, embeddings, options["layer_norm_epsilon"], path),
        tie_embeddings=embeddings.tying(codec),  # type: ignore[arg-type]
        output_bias=embeddings.has_bias(vocabularies[1]),
        source_end=options["add_source_eos"],
    )
    model = make_model(config, codec, vocabularies, embeddings)
    names = ctranslate2(config).fill(model, file.arrays, path)
    assign_positions(model, file.arrays)
    require_all_used(file.arrays, names | used_names(file.arrays), path)
    decode, task = _search(folder, config)
    run = replace(run_config(config, codec, decode, {}), task=task)
    return Imported(run, codec, model, vocabularies, notes)


def _options(folder: pathlib.Path, file: ModelFile) -> tuple[dict[str, Any], list[str]]:
    """The content of config.json, checked, and notes."""
    path = folder / "config.json"
    options = OPTIONS | (read_json(path) if file.version > 5 or path.is_file() else {})
    flag = file.arrays.get
    if file.version < 6:
        options["add_source_bos"] = bool(flag("with_source_bos", 0))
        options["add_source_eos"] = bool(flag("with_source_eos", 0))
        if not flag("with_target_bos", 1):
            options["decoder_start_token"] = options["eos_token"]
    notes = without_effect(options, OPTIONS, path)
    if options["add_source_bos"]:
        raise InputError(f"{path}: add_source_bos must be false, got true.")
    for key in ("unk_token", "bos_token", "eos_token", "decoder_start_token"):
        if not isinstance(options[key], str):
            raise InputError(f"{path}: {key} must be a token, got {options[key]!r}.")
    for key in ("add_source_eos", "multi_query_attention"):
        if not isinstance(options[key], bool):
            raise InputError(f"{path}: {key} must be true or false, got {options[key]!r}.")
    if options["layer_norm_epsilon"] is not None:
        options["layer_norm_epsilon"] = decimal(options, "layer_norm_epsilon", 0, 0, path)
    return options, notes


def _embeddings(arrays: Mapping[str, np.ndarray], path: pathlib.Path) -> Embeddings:
    numbered = "encoder/embeddings_0/weight"
    names = (
        numbered if numbered in arrays else "encoder/embeddings/weight",
        "decoder/embeddings/weight",
        "decoder/projection/weight",
    )
    for name in names:
        if name not in arrays or arrays[name].ndim != 2:
            raise InputError(f"{path} must have the matrix {name}, which a Transformer needs.")
    if "encoder/embeddings_1/weight" in arrays:
        raise InputError(f"{path} has source features, which are not supported.")
    source, target, output = (arrays[name] for name in names)
    return Embeddings(source, target, output, arrays.get("decoder/projection/bias"))


def _vocabularies(
    folder: pathlib.Path, file: ModelFile, options: Mapping[str, Any], embeddings: Embeddings
) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies of source and target; one object for a shared vocabulary."""
    starts_with_zeros = bool(file.arrays.get("decoder/start_from_zero_embedding", 0))
    special = SpecialTokens(
        start=None if starts_with_zeros else options["decoder_start_token"],
        end=options["eos_token"],
        unknown=options["unk_token"],
    )
    vocabularies = []
    for side, matrix in (("source", embeddings.source), ("target", embeddings.target)):
        path = _vocabulary_file(folder, side)
        tokens = read_json(path, list) if path.suffix == ".json" else read_lines(path)
        if not all(isinstance(token, str) for token in tokens):
            raise InputError(f"{path} must be a list of tokens.")
        if special.unknown not in tokens:
            tokens = [*tokens, special.unknown]
        vocabularies.append(Vocabulary.of_list(tokens, len(matrix), special, str(path)))
    source, target = vocabularies
    return (target, target) if source == target else (source, target)


def _vocabulary_file(folder: pathlib.Path, side: str) -> pathlib.Path:
    for name in ("shared", side):
        for ending in (".json", ".txt"):
            if (path := folder / f"{name}_vocabulary{ending}").is_file():
                return path
    raise InputError(f"{folder} must have shared_vocabulary.json or {side}_vocabulary.json.")


def _search(folder: pathlib.Path, model: ModelConfig) -> tuple[DecodeConfig, TranslationOptions]:
    """The options of the search and the rules for texts: as in search.json, else defaults."""
    longest = model.max_length if model.position == "learned" else LONGEST
    path = folder / "search.json"
    if not path.is_file():
        decode = DecodeConfig(
            beam_size=2,
            length_penalty=1.0,
            length_penalty_offset=0.0,
            max_length=256,
            max_extra_length=256,
            max_source_length=longest,
            average=1,
        )
        return decode, TranslationOptions()
    stored = read_json(path)
    names = {field.name for field in fields(DecodeConfig)} & stored.keys()
    own = select(TranslationOptions, lambda rules: rules.formats).keys() & stored.keys()
    try:
        return (
            DecodeConfig(**{name: stored[name] for name in names} | {"average": 1}),
            TranslationOptions(**{name: stored[name] for name in own}),
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
