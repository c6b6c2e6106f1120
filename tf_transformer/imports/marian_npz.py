"""A model in Marian's own files, as a run.

The folder has a decoder.yml that names the weights (.npz) and the vocabularies. A vocabulary is a
SentencePiece model (.spm), or a list of tokens (.yml) beside source.spm and target.spm. The weights
hold the options of the model. Source: Marian 1.12.
"""

import pathlib
import zipfile
from typing import Any

import numpy as np

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.layouts import MARIAN, Arrays, array_of
from tf_transformer.imports.marian_vocabulary_file import read_vocabulary_file
from tf_transformer.imports.options import Options, read_bytes, read_yaml
from tf_transformer.imports.vocabulary import Vocabulary
from tf_transformer.imports.weights import require_finite
from tf_transformer.text.sentencepiece_file import ModelFileError, read_pieces

EMBEDDING = {
    "all": "Wemb",  # one matrix for source and target
    "source": "encoder_Wemb",
    "target": "decoder_Wemb",
    "output": "decoder_ff_logit_out_W",  # (D, V)
    "output_transposed": "decoder_ff_logit_out_Wt",  # (V, D)
}
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
# Options that Marian wants in each model, without an effect on a Transformer with self-attention.
UNUSED: dict[str, Any] = {
    **{"bert-train-type-embeddings": True, "bert-type-vocab-size": 2, "dec-cell": "gru"},
    **{"dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "dim-rnn": 1024, "enc-cell": "gru"},
    **{"enc-cell-depth": 1, "enc-type": "bidirectional", "factors-combine": "sum"},
    **{"factors-dim-emb": 0, "input-types": [], "layer-normalization": False, "skip": False},
    **{"transformer-aan-activation": "swish", "transformer-aan-depth": 2},
    **{"transformer-aan-nogate": False, "transformer-dim-aan": 2048, "ulr-dim-emb": 0},
    **{"transformer-guided-alignment-layer": "last", "ulr-trainable-transformation": False},
    "separator-symbol": "[eos]",
}
IGNORED = (*UNUSED, "version", "special-vocab", "transformer-depth-scaling", "original-type")
# Options of decoder.yml that the import reads.
SEARCH = (
    *("models", "vocabs", "relative-paths", "beam-size", "normalize", "word-penalty"),
    *("max-length-factor", "max-length", "max-length-crop", "allow-unk"),
)


def is_marian(folder: pathlib.Path) -> bool:
    """Whether a folder has Marian's own files, and not those of Transformers."""
    if any((folder / name).is_file() for name in ("config.json", "vocab.json")):
        return False
    return bool([*folder.glob("*decoder.yml"), *folder.glob("*.npz")])


def read(folder: pathlib.Path) -> imported.Imported:
    """Reads a folder with decoder.yml, or with one file that ends in .decoder.yml."""
    weights, files, search = find_files(folder)
    arrays = read_arrays(weights)
    options, notes = model_options(arrays, weights)
    (source, target, output), used = _matrices(arrays, options)
    of_source = of_target = _vocabulary(files[0], len(source))
    if files[0] != files[1] or len(source) != len(target):
        of_target = _vocabulary(files[1], len(target))
    sentencepiece = _sentencepiece(folder, files)
    array_of(arrays, MARIAN.bias, (1, len(target)), weights)  # it must be there
    notes.append(f"{weights.name}: dropout, which Marian does not store, is 0.1 for training")
    if unread := sorted(key for key in search.keys() - SEARCH if search[key]):
        notes.append(f"decoder.yml: not read: {', '.join(unread)}")
    size = options.number("transformer-dim-ffn")
    foreign = imported.ForeignModel(
        weights,
        arrays | {name: array[0] for name, array in arrays.items() if len(array) == 1},
        MARIAN,
        {*used, OPTIONS},
        imported.Embeddings(source, target, output),
        (of_source, of_target),
        sentencepiece,
        options={
            "num_layers": options.number("dec-depth"),
            "num_encoder_layers": options.number("enc-depth"),
            "d_model": options.number("dim-emb"),
            "d_ff": options.get("transformer-decoder-dim-ffn") or size,
            "encoder_d_ff": size,
            "num_heads": options.number("transformer-heads"),
            "position": "marian",
            "activation": options.activation("transformer-ffn-activation", "swish"),
            "norm_epsilon": EPSILON,
            "attention_bias": True,
            "zero_start": output is target,
        },
        decode=_search(search),
        notes=notes,
    )
    return imported.as_run(foreign)


def find_files(folder: pathlib.Path) -> tuple[pathlib.Path, imported.Paths, Options]:
    """The weights and the vocabularies that decoder.yml names, and its options of the search."""
    path = folder / "decoder.yml"
    files = [path] if path.is_file() else sorted(folder.glob("*.decoder.yml"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise InputError(
            f"{folder} must have decoder.yml, or one file that ends in .decoder.yml, got {names}."
        )
    (path,) = files
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
    return weights, (source, target), options


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


def model_options(arrays: Arrays, path: pathlib.Path) -> tuple[Options, list[str]]:
    """The options in the weights, checked, and notes."""
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
    of_characters = (key for key in options if key.startswith("char-"))
    return options, options.without_effect((*FIXED, *READ, *IGNORED, *of_characters))


def _matrices(arrays: Arrays, options: Options) -> tuple[list[np.ndarray], set[str]]:
    """The matrices (V, D) of source, target and output, and the names of the arrays."""
    path, size = options.file, options.number("dim-emb")
    shares = options.get("tied-embeddings-all") or options.get("tied-embeddings-src")
    names = [EMBEDDING["all"]] * 2 if shares else [EMBEDDING["source"], EMBEDDING["target"]]
    matrices = [array_of(arrays, name, (-1, size), path) for name in names]
    if options.get("tied-embeddings-all") or options.get("tied-embeddings"):
        return [*matrices, matrices[1]], set(names)
    rows = len(matrices[1])
    if (name := EMBEDDING["output_transposed"]) in arrays:
        output = array_of(arrays, name, (rows, size), path)
    else:
        name = EMBEDDING["output"]
        output = array_of(arrays, name, (size, rows), path).T
    return [*matrices, output], {*names, name}


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


def _sentencepiece(folder: pathlib.Path, paths: imported.Paths) -> imported.Paths:
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


def _search(search: Options) -> DecodeConfig:
    """The options of the search, with the defaults of marian-decoder."""
    if penalty := search.get("word-penalty"):
        raise InputError(
            f"{search.file}: word-penalty must be 0, got {penalty!r}. There is no such penalty "
            "here."
        )
    return DecodeConfig(
        beam_size=int(search.decimal("beam-size", 12, 1)),
        length_penalty=search.decimal("normalize", 0),
        length_penalty_offset=0.0,
        max_length_ratio=search.decimal("max-length-factor", 3),
        max_extra_length=0,
        max_source_length=int(search.decimal("max-length", 1000, 1)),
        avoid_unknown=not search.get("allow-unk", False),
    )
