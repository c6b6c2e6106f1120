"""A model in Marian's own files, as a run.

The folder has a decoder.yml that names the weights (.npz) and the vocabularies. A vocabulary is a
SentencePiece model (.spm), or a list of tokens (.yml) beside source.spm and target.spm. The weights
hold the options of the model. Source: Marian 1.12.
"""

import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.config import Config, DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.imports.imported import (
    ACTIVATIONS,
    Embeddings,
    Imported,
    make_codec,
    make_model,
    read_bytes,
    run_config,
)
from tf_transformer.imports.layouts import MARIAN
from tf_transformer.imports.marian_vocabulary_file import read_vocabulary_file
from tf_transformer.imports.options import decimal, number, read_yaml, without_effect
from tf_transformer.imports.vocabulary import Vocabulary
from tf_transformer.imports.weights import require_finite
from tf_transformer.text.codec import Codec
from tf_transformer.text.sentencepiece_file import ModelFileError, read_pieces

EMBEDDING = {
    "all": "Wemb",  # one matrix for source and target
    "source": "encoder_Wemb",
    "target": "decoder_Wemb",
    "output": "decoder_ff_logit_out_W",  # (D, V)
    "output_transposed": "decoder_ff_logit_out_Wt",  # (V, D)
}
BIAS = "decoder_ff_logit_out_b"  # (1, V)
OPTIONS = "special:model.yml"  # bytes of a text
EPSILON = 1e-6  # of the layer normalization of Marian's Transformers, since its first version
# Options of special:model.yml with one value that is supported, and what another value means.
FIXED: dict[str, tuple[Any, str]] = {
    "type": ("transformer", "is another kind of model"),
    "transformer-decoder-autoreg": ("self-attention", "has an SSRU or averages in the decoder"),
    "transformer-preprocess": ("", "normalizes before each sub-layer"),
    "transformer-postprocess": ("dan", "joins its sub-layers in another way"),
    "transformer-postprocess-emb": ("d", "normalizes its embeddings"),
    "transformer-postprocess-top": ("", "normalizes after the last layer"),
    "transformer-ffn-depth": (2, "has deeper feed-forward networks"),
    "transformer-decoder-ffn-depth": (0, "has another feed-forward network in the decoder"),
    "transformer-train-position-embeddings": (False, "has learned positions"),
    "transformer-train-positions": (False, "has learned positions"),
    "transformer-no-projection": (False, "has attention without an output projection"),
    "transformer-no-bias": (False, "has no biases"),
    "transformer-no-affine": (False, "has norms without weights"),
    "transformer-pool": (False, "has pooling in place of attention"),
    "transformer-rnn-projection": (False, "has an SSRU"),
    "transformer-disable-position-embeddings": (False, "has no positions"),
    "transformer-attention-mask": ("default", "has ALiBi or another attention mask"),
    "transformer-alibi-shift": (False, "has ALiBi"),
    "transformer-alibi-trainable": (False, "has ALiBi"),
    "transformer-tied-layers": ([], "has layers that share weights"),
    "lemma-dim-emb": (0, "has factors"),
    "lemma-dependency": ("", "has factors"),
    "right-left": (False, "writes from right to left"),
    "ulr": (False, "has universal representations"),
    "output-omit-bias": (False, "has no bias of the logits"),
}
# Further values with the same effect. Dropout (d) acts in training only.
SAME: dict[str, tuple[Any, ...]] = {
    "transformer-preprocess": ("d",),
    "transformer-postprocess": ("an",),
    "transformer-postprocess-emb": ("",),
    "transformer-postprocess-top": ("d",),
    "transformer-decoder-ffn-depth": (2,),
}
# Options that the import reads.
READ = (
    *("dim-vocabs", "dim-emb", "enc-depth", "dec-depth", "transformer-heads"),
    *("transformer-dim-ffn", "transformer-decoder-dim-ffn", "transformer-ffn-activation"),
    *("tied-embeddings", "tied-embeddings-src", "tied-embeddings-all"),
)
# Options without an effect on a trained Transformer with self-attention.
IGNORED = (
    *("bert-train-type-embeddings", "bert-type-vocab-size", "dec-cell", "dec-cell-base-depth"),
    *("dec-cell-high-depth", "dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "input-types"),
    *("layer-normalization", "skip", "special-vocab", "transformer-aan-activation"),
    *("transformer-aan-depth", "transformer-aan-nogate", "transformer-dim-aan", "version"),
    *("transformer-guided-alignment-layer", "ulr-dim-emb", "ulr-trainable-transformation"),
    *("factors-combine", "factors-dim-emb", "transformer-depth-scaling", "original-type"),
    "separator-symbol",
)
# Options of decoder.yml that the import reads.
SEARCH = (
    *("models", "vocabs", "relative-paths", "beam-size", "normalize", "word-penalty"),
    *("max-length-factor", "max-length", "max-length-crop", "allow-unk"),
)


class Files(NamedTuple):
    """The files of a model, and its options of the search."""

    weights: pathlib.Path
    vocabularies: tuple[pathlib.Path, pathlib.Path]
    search: Mapping[str, Any]


def is_marian(folder: pathlib.Path) -> bool:
    """Whether a folder has Marian's own files, and not those of Transformers."""
    if any((folder / name).is_file() for name in ("config.json", "vocab.json")):
        return False
    return bool([*folder.glob("*decoder.yml"), *folder.glob("*.npz")])


def read(folder: pathlib.Path) -> Imported:
    """Reads a folder.

    Args:
        folder: a folder with decoder.yml, or one file that ends in .decoder.yml.

    Raises:
        InputError: for a folder that has no such model, or a model that this project does not
            support. The message names the file and the key.
    """
    files = find_files(folder)
    arrays = read_arrays(files.weights)
    options, notes = model_options(arrays, files.weights)
    (of_source, of_target, output), used = _matrices(arrays, options, files.weights)
    source, target = _vocabularies(files.vocabularies, len(of_source), len(of_target))
    codec = make_codec((source, target), _sentencepiece(folder, files.vocabularies))
    bias = _array(arrays, BIAS, (1, len(of_target)), files.weights)
    embeddings = Embeddings(of_source, of_target, output, bias[0])
    config = _config(options, files, codec, embeddings.tying(codec))
    model = make_model(config.model, codec, (source, target), embeddings)
    vectors = {name: array[0] for name, array in arrays.items() if len(array) == 1}
    used |= {BIAS, OPTIONS, *MARIAN.fill(model, arrays | vectors, files.weights)}
    if unknown := sorted(set(arrays) - used):
        raise InputError(
            f"{files.weights} has weights that its options do not explain: {unknown[0]} and "
            f"{len(unknown) - 1} more."
        )
    notes.append(f"{files.weights.name}: dropout, which Marian does not store, is 0.1 for training")
    if unread := sorted(key for key in files.search.keys() - SEARCH if files.search[key]):
        notes.append(f"decoder.yml: not read: {', '.join(unread)}")
    return Imported(config, codec, model, (source, target), notes)


def find_files(folder: pathlib.Path) -> Files:
    """Finds the files that decoder.yml names."""
    path = folder / "decoder.yml"
    found = [path] if path.is_file() else sorted(folder.glob("*.decoder.yml"))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise InputError(
            f"{folder} must have decoder.yml, or one file that ends in .decoder.yml, got {names}."
        )
    (path,) = found
    options = read_yaml(path.read_bytes(), path)
    models, vocabularies = (
        [x for x in options.get(key) or () if isinstance(x, str)] for key in ("models", "vocabs")
    )
    if len(models) != 1 or len(vocabularies) != 2:
        raise InputError(
            f"{path}: expected one file in models and two in vocabs, got {len(models)} and "
            f"{len(vocabularies)}. Keep one model: an ensemble is --run_dir with several runs."
        )
    if not models[0].endswith(".npz"):
        raise InputError(
            f"{path}: models must name an .npz file, got {models[0]}. Marian's .bin files, with "
            "intgemm or without, are not supported. Take the .npz that they were made from."
        )
    weights, source, target = (
        folder / pathlib.PurePath(name).name for name in (*models, *vocabularies)
    )
    return Files(weights, (source, target), options)


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz file, as float32 but for the options."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is missing, cut short or no .npz file: {error}.") from error
    if OPTIONS not in arrays:
        raise InputError(f"{path} has no {OPTIONS}, so it is not a model of Marian.")
    arrays |= {n: np.asarray(x, np.float32) for n, x in arrays.items() if n != OPTIONS}
    require_finite({n: x for n, x in arrays.items() if n != OPTIONS}, path)
    return arrays


def model_options(
    arrays: Mapping[str, np.ndarray], path: pathlib.Path
) -> tuple[dict[str, Any], list[str]]:
    """The options in the weights, checked, and notes.

    Raises:
        InputError: for an option that is unknown, or has a value that is not supported.
    """
    options = read_yaml(arrays[OPTIONS].tobytes().rstrip(b"\0"), path)
    if options.get("dec-cell") == "ssru" and options.get("transformer-decoder-autoreg") == "rnn":
        raise InputError(f"{path}: dec-cell is ssru. Models with an SSRU are not supported.")
    for key, (expected, meaning) in FIXED.items():
        value = options.get(key, expected)
        if value not in (expected, *SAME.get(key, ())) and (value or expected):
            raise InputError(
                f"{path}: {key} must be {expected!r}, got {value!r}. This model {meaning}, which "
                "is not supported."
            )
    others = {key: value for key, value in options.items() if not key.startswith("char-")}
    return options, without_effect(others, (*FIXED, *READ, *IGNORED), path)


def _array(
    arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], path: pathlib.Path
) -> np.ndarray:
    """An array of the given shape; -1 stands for any size."""
    if name not in arrays:
        raise InputError(f"{path} has no {name}, which its options need.")
    array = arrays[name]
    fits = len(array.shape) == len(shape) and all(
        size in (-1, found) for size, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{path}: {name} must have the shape {shape}, got {array.shape}.")
    return array


def _matrices(
    arrays: Mapping[str, np.ndarray], options: Mapping[str, Any], path: pathlib.Path
) -> tuple[list[np.ndarray], set[str]]:
    """The matrices (V, D) of source, target and output, and the names of the arrays."""
    size = number(options, "dim-emb", path)
    shares = options.get("tied-embeddings-all") or options.get("tied-embeddings-src")
    names = [EMBEDDING["all"]] * 2 if shares else [EMBEDDING["source"], EMBEDDING["target"]]
    matrices = [_array(arrays, name, (-1, size), path) for name in names]
    if options.get("tied-embeddings-all") or options.get("tied-embeddings"):
        return [*matrices, matrices[1]], set(names)
    rows = len(matrices[1])
    if (name := EMBEDDING["output_transposed"]) in arrays:
        output = _array(arrays, name, (rows, size), path)
    else:
        name = EMBEDDING["output"]
        output = _array(arrays, name, (size, rows), path).T
    return [*matrices, output], {*names, name}


def _vocabularies(
    paths: tuple[pathlib.Path, pathlib.Path], source_size: int, target_size: int
) -> tuple[Vocabulary, Vocabulary]:
    source = _vocabulary(paths[0], source_size)
    if paths[0] == paths[1] and source_size == target_size:
        return source, source
    return source, _vocabulary(paths[1], target_size)


def _vocabulary(path: pathlib.Path, size: int) -> Vocabulary:
    """The vocabulary of a file, with a token for padding at the end."""
    if path.suffix == ".spm":
        try:
            ids = {piece.text: i for i, piece in enumerate(read_pieces(read_bytes(path)))}
        except ModelFileError as error:
            raise InputError(f"{path}: {error}") from error
    elif path.suffix in (".yml", ".yaml"):
        ids = read_vocabulary_file(path)
    else:
        raise InputError(
            f"{path}: a vocabulary must be .spm or .yml, got {path.suffix or 'no ending'}. "
            "Vocabularies with factors are not supported."
        )
    padding = next(text for text in ("<pad>", "<padding>", "<0>") if text not in ids)
    return Vocabulary.of({**ids, padding: size}, size + 1, size, size, str(path))


def _sentencepiece(
    folder: pathlib.Path, paths: tuple[pathlib.Path, pathlib.Path]
) -> tuple[pathlib.Path, pathlib.Path]:
    """The files of the SentencePiece models of source and target."""
    files = []
    for side, path in zip(("source", "target"), paths, strict=True):
        spm = path if path.suffix == ".spm" else folder / f"{side}.spm"
        if not spm.is_file() and (folder / f"{side}.bpe").is_file():
            raise InputError(
                f"{folder / f'{side}.bpe'}: models with pieces of subword-nmt are not supported. "
                f"Take a model with {side}.spm."
            )
        files.append(spm)
    return files[0], files[1]


def _config(options: Mapping[str, Any], files: Files, codec: Codec, tying: str) -> Config:
    """The configuration of the run."""
    path = files.weights
    activation = options.get("transformer-ffn-activation", "swish")
    if activation not in ACTIVATIONS:
        raise InputError(
            f"{path}: transformer-ffn-activation must be one of {', '.join(ACTIVATIONS)}, got "
            f"{activation!r}."
        )
    size = number(options, "transformer-dim-ffn", path)
    model = ModelConfig(
        num_layers=number(options, "dec-depth", path),
        num_encoder_layers=number(options, "enc-depth", path),
        d_model=number(options, "dim-emb", path),
        d_ff=options.get("transformer-decoder-dim-ffn") or size,
        encoder_d_ff=size,
        num_heads=number(options, "transformer-heads", path),
        position="marian",
        activation=ACTIVATIONS[activation],  # type: ignore[arg-type]
        norm_epsilon=EPSILON,
        tie_embeddings=tying,  # type: ignore[arg-type]
        attention_bias=True,
        output_bias=True,
        zero_start=tying != "none",
    )
    return run_config(model, codec, _search(files), languages={})


def _search(files: Files) -> DecodeConfig:
    """The options of the search, with the defaults of marian-decoder."""
    place = f"decoder.yml in {files.weights.parent}"
    if penalty := files.search.get("word-penalty"):
        raise InputError(
            f"{place}: word-penalty must be 0, got {penalty!r}. There is no such penalty here."
        )
    return DecodeConfig(
        beam_size=int(decimal(files.search, "beam-size", 12, 1, place)),
        length_penalty=decimal(files.search, "normalize", 0, 0, place),
        length_penalty_offset=0.0,
        max_length_ratio=decimal(files.search, "max-length-factor", 3, 0, place),
        max_extra_length=0,
        max_source_length=int(decimal(files.search, "max-length", 1000, 1, place)),
        avoid_unknown=not files.search.get("allow-unk", False),
        average=1,
    )
