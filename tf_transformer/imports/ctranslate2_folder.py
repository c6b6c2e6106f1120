"""A Transformer in a folder of CTranslate2, as a run.

The folder has model.bin, config.json, and shared_vocabulary.json, or source_vocabulary.json and
target_vocabulary.json; older folders have .txt files. Sources: `specs/` and `src/` of CTranslate2
4.8.
"""

import pathlib
from typing import Any

from tf_transformer.config import DecodeConfig
from tf_transformer.config.option import Rules, select
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.ctranslate2_file import ModelFile, read_model_file
from tf_transformer.imports.ctranslate2_model import assign_positions, model_options, used_names
from tf_transformer.imports.layouts import ctranslate2
from tf_transformer.imports.options import Options, read_json, read_lines
from tf_transformer.imports.vocabulary import SpecialTokens

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


def read(folder: pathlib.Path, tokenizer: str = "") -> imported.Imported:
    """Reads a folder; `tokenizer` is as in `find_sentencepiece`."""
    file = read_model_file(folder / "model.bin")
    if file.kind not in KINDS:
        raise InputError(f"{file.path} is a {file.kind}. Only a {KINDS[0]} can be a run.")
    options, notes = _options(folder, file)
    embeddings = _embeddings(file)
    start = options["decoder_start_token"]
    if file.arrays.get("decoder/start_from_zero_embedding", 0):
        start = None
    special = SpecialTokens(start, options["eos_token"], options["unk_token"])

    def tokens_of(side: str) -> tuple[list[str], SpecialTokens, pathlib.Path]:
        path = _vocabulary_file(folder, side)
        tokens = read_json(path, list) if path.suffix == ".json" else read_lines(path)
        if not all(isinstance(token, str) for token in tokens):
            raise InputError(f"{path} must be a list of tokens.")
        unknown = [special.unknown] * (special.unknown not in tokens)
        return tokens + unknown, special, path

    vocabularies = imported.read_vocabularies(embeddings, tokens_of)
    sentencepiece = imported.find_sentencepiece(folder, tokenizer)
    of_model = model_options(file, embeddings, options["layer_norm_epsilon"])
    is_learned = of_model["position"] == "learned"
    decode, task = _search(folder, of_model["max_length"] if is_learned else imported.LONGEST)
    foreign = imported.ForeignModel(
        file.path,
        file.arrays,
        ctranslate2(of_model["activation"] == "swiglu"),
        used_names(file.arrays),
        embeddings,
        vocabularies,
        sentencepiece,
        of_model | {"source_end": options["add_source_eos"]},
        decode,
        notes,
        task=task,
    )
    run = imported.as_run(foreign)
    assign_positions(run.model, file)
    return run


def _options(folder: pathlib.Path, file: ModelFile) -> tuple[Options, list[str]]:
    """The content of config.json, checked, and notes."""
    path = folder / "config.json"
    stored = read_json(path) if file.version > 5 or path.is_file() else {}
    options = Options(OPTIONS | stored, path)
    flag = file.arrays.get
    if file.version < 6:
        options["add_source_bos"] = bool(flag("with_source_bos", 0))
        options["add_source_eos"] = bool(flag("with_source_eos", 0))
        if not flag("with_target_bos", 1):
            options["decoder_start_token"] = options["eos_token"]
    notes = options.without_effect(OPTIONS)
    if options["add_source_bos"]:
        raise options.must_be("add_source_bos", "false")
    for key in ("unk_token", "bos_token", "eos_token", "decoder_start_token"):
        if not isinstance(options[key], str):
            raise options.must_be(key, "a token")
    for key in ("add_source_eos", "multi_query_attention"):
        if not isinstance(options[key], bool):
            raise options.must_be(key, "true or false")
    if options["layer_norm_epsilon"] is not None:
        options["layer_norm_epsilon"] = options.decimal("layer_norm_epsilon", 0)
    return options, notes


def _embeddings(file: ModelFile) -> imported.Embeddings:
    path, arrays = file.path, file.arrays
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
    return imported.Embeddings(source, target, output)


def _vocabulary_file(folder: pathlib.Path, side: str) -> pathlib.Path:
    for name in ("shared", side):
        for ending in (".json", ".txt"):
            if (path := folder / f"{name}_vocabulary{ending}").is_file():
                return path
    raise InputError(f"{folder} must have shared_vocabulary.json or {side}_vocabulary.json.")


def _search(folder: pathlib.Path, longest: int) -> tuple[DecodeConfig, TranslationOptions]:
    """The options of the search and the rules for texts: those of an export, else defaults."""
    path, stored = _exported(folder)
    if not stored:
        search = DecodeConfig(
            beam_size=2,
            length_penalty=1.0,
            length_penalty_offset=0.0,
            max_length=256,
            max_extra_length=256,
            max_source_length=longest,
        )
        return search, TranslationOptions()
    decode, task = (
        {name: stored[name] for name in select(options, _has_option).keys() & stored.keys()}
        for options in (DecodeConfig, TranslationOptions)
    )
    try:
        return DecodeConfig(**decode), TranslationOptions(**task)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _exported(folder: pathlib.Path) -> tuple[pathlib.Path, dict[str, Any]]:
    """The options of an export by name, and their file; no options in a folder of others."""
    path = folder / "metadata.json"
    if path.is_file():
        decoding = read_json(path).get("decoding", {})
        if not isinstance(decoding, dict):
            raise InputError(f"{path}: decoding must be an object, got {decoding!r:.80}.")
        return path, decoding
    path = folder / "search.json"  # of exports by version 0.2.0
    return path, read_json(path) if path.is_file() else {}


def _has_option(rules: Rules) -> bool:
    """Whether folders have an option of the search."""
    return "ctranslate2" in rules.formats
