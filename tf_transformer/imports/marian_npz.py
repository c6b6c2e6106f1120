"""A model in Marian's own files, as a run.

The folder has a decoder.yml that names the weights (.npz or .bin) and the vocabularies. A
vocabulary is a SentencePiece model (.spm), or a list of tokens (.yml) beside source.spm and
target.spm. The weights hold the options of the model. A folder of Firefox's files has no
decoder.yml. Source: Marian 1.12.
"""

import pathlib
import zipfile

import numpy as np

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.layouts import Arrays, array_of, marian
from tf_transformer.imports.marian_bin import read_binary
from tf_transformer.imports.marian_options import (
    OPTIONS,
    decodes_with_ssru,
    model_options,
    normalizes_first,
)
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
EPSILON = 1e-6  # of the layer normalization of Marian's Transformers, since its first version
# Files that name those of the model, and the options of the search; the first that is there.
CONFIGURATIONS = (
    *("decoder.yml", "*.decoder.yml"),
    *("config.intgemm8bitalpha.yml", "config.*.yml"),
)
# The options with which Firefox runs its models, whose folders have no such file.
FIREFOX = {"beam-size": 1, "normalize": 1.0, "max-length-factor": 2.0}
# Options of decoder.yml that the import reads.
SEARCH = (
    *("models", "vocabs", "relative-paths", "beam-size", "normalize", "word-penalty"),
    *("max-length-factor", "max-length", "max-length-crop", "allow-unk"),
)


def is_marian(folder: pathlib.Path) -> bool:
    """Whether a folder has Marian's own files, and not those of Transformers."""
    if any((folder / name).is_file() for name in ("config.json", "vocab.json")):
        return False
    return any(folder.glob(name) for name in ("*decoder.yml", "*.npz", "*.bin"))


def read(folder: pathlib.Path) -> imported.Imported:
    """Reads a folder with decoder.yml, or with one file that ends in .decoder.yml."""
    weights, files, search = find_files(folder)
    arrays = read_arrays(weights)
    options, notes = model_options(arrays, weights)
    norm_first, has_ssru = normalizes_first(options), decodes_with_ssru(options)
    (source, target, output), used = _matrices(arrays, options)
    of_source = of_target = _vocabulary(files[0], len(source))
    if files[0] != files[1] or len(source) != len(target):
        of_target = _vocabulary(files[1], len(target))
    sentencepiece = _sentencepiece(folder, files)
    layout = marian(norm_first, has_ssru)
    array_of(arrays, layout.bias, (1, len(target)), weights)  # it must be there
    notes.append(f"{weights.name}: dropout, which Marian does not store, is 0.1 for training")
    if weights.suffix == ".bin":
        notes.append(f"{weights.name}: the run has float32 weights, and does not round activations")
    if unread := sorted(key for key in search.keys() - SEARCH if search[key]):
        notes.append(f"{search.file.name}: not read: {', '.join(unread)}")
    size = options.number("transformer-dim-ffn")
    foreign = imported.ForeignModel(
        weights,
        arrays | {name: array[0] for name, array in arrays.items() if len(array) == 1},
        layout,
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
            "decoder_attention": "ssru" if has_ssru else "same",
            "norm_first": norm_first,
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
    options = _search_options(folder)
    path = options.file
    models, vocabularies = (
        [x for x in options.get(key) or () if isinstance(x, str)] for key in ("models", "vocabs")
    )
    if len(models) != 1 or len(vocabularies) != 2:
        raise InputError(
            f"{path}: expected one file in models and two in vocabs, got {len(models)} and "
            f"{len(vocabularies)}. Keep one model: an ensemble is --run_dir with several runs."
        )
    if not models[0].endswith((".npz", ".bin")):
        raise InputError(f"{path}: models must name an .npz or .bin file, got {models[0]}.")
    weights, source, target = (
        folder / pathlib.PurePath(name).name for name in (*models, *vocabularies)
    )
    return weights, (source, target), options


def _search_options(folder: pathlib.Path) -> Options:
    """The names of files and the options of the search, from a file or as Firefox has them."""
    for pattern in CONFIGURATIONS:
        if len(files := sorted(folder.glob(pattern))) == 1:
            return read_yaml(files[0].read_bytes(), files[0])
        if files:
            names = ", ".join(file.name for file in files)
            raise InputError(f"{folder} must have one file {pattern}, got {names}.")
    binaries, vocabularies = (
        sorted(file.name for file in folder.glob(pattern)) for pattern in ("*.bin", "*vocab.*.spm")
    )
    shortlists = [name for name in binaries if name.startswith("lex.")]
    models = [name for name in binaries if name not in shortlists]
    if len(models) != 1 or len(vocabularies) not in (1, 2):
        names = ", ".join([*models, *vocabularies]) or "none"
        raise InputError(
            f"{folder} must have decoder.yml, or one file that ends in .decoder.yml. Without it, "
            "the folder must have Firefox's files: one .bin file of a model, and vocab.*.spm, or "
            f"srcvocab.*.spm and trgvocab.*.spm. Got {names}."
        )
    named = {"models": models, "vocabs": [vocabularies[0], vocabularies[-1]]}
    return Options({**named, **FIREFOX, "shortlist": shortlists}, folder)


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz or .bin file, as float32 but for the options.

    The scales with which intgemm makes integers of activations are left out.
    """
    arrays = read_binary(path) if path.suffix == ".bin" else _read_npz(path)
    if OPTIONS not in arrays:
        raise InputError(f"{path} has no {OPTIONS}, so it is not a model of Marian.")
    arrays = {
        name: array if name == OPTIONS else np.asarray(array, np.float32)
        for name, array in arrays.items()
        if not name.endswith("_QuantMultA")
    }
    require_finite({n: x for n, x in arrays.items() if n != OPTIONS}, path)
    return arrays


def _read_npz(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is missing, cut short or no .npz file: {error}.") from error


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
