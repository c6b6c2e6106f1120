"""A Transformer of OpenNMT-tf 2, as a run.

The folder has a checkpoint, a .yml file with the options of the training, the vocabularies that it
names, and model_description.py if OpenNMT-tf wrote it. Source: OpenNMT-tf 2.32.
"""

import pathlib
import re
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.layouts import Arrays, opennmt_tf
from tf_transformer.imports.options import Options, read_bytes, read_lines, read_yaml
from tf_transformer.imports.vocabulary import SpecialTokens
from tf_transformer.imports.weights import require_finite

SOURCE = "model/examples_inputter/features_inputter/embedding"  # (V, D)
TARGET = "model/examples_inputter/labels_inputter/embedding"  # (V, D), unless it is shared
OUTPUT = "model/decoder/output_layer/kernel"  # (D, V), unless it is shared
EPSILON = 1e-3  # of Keras' layer normalization, which OpenNMT-tf uses
# Options of the search that the import does not read, with the values that change no translation.
UNREAD: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("minimum_decoding_length", "coverage_penalty"), (None, 0)),
    **dict.fromkeys(("decoding_noise", "replace_unknown_target"), (None, False, [])),
    "sampling_topk": (None, 1),
}
# Heads of the models in OpenNMT-tf's catalog. The checkpoint does not have the number.
HEADS = {
    **{"Transformer": 8, "TransformerBase": 8, "TransformerBaseSharedEmbeddings": 8},
    **{"TransformerBig": 16, "TransformerBigSharedEmbeddings": 16, "TransformerTiny": 2},
    "ScalingNmtEnDe": 16,
}
_CATALOG_NAME = re.compile(r"""get_model_from_catalog\(\s*["'](\w+)["']""")
_END = "/.ATTRIBUTES/VARIABLE_VALUE"


def read(folder: pathlib.Path, tokenizer: str = "", num_heads: int = 0) -> imported.Imported:
    """Reads a folder; `tokenizer` is as in `find_sentencepiece`.

    `num_heads` is the number of attention heads; 0: model_description.py names a model of the
    catalog.
    """
    arrays, path = read_checkpoint(folder)
    data, params = _options(folder)
    embeddings = _embeddings(arrays, path)

    def tokens_of(side: str) -> tuple[list[str], SpecialTokens, pathlib.Path]:
        name = data.get(f"{side}_vocabulary")
        if not isinstance(name, str):
            raise InputError(f"{data.file}: data must have {side}_vocabulary, got {name!r}.")
        file = folder / pathlib.PurePath(name).name
        tokens = read_lines(file)
        unknown = "<unk>" if "<unk>" not in tokens else "<unknown>"  # the last row, not in the file
        return [*tokens, unknown], SpecialTokens("<s>", "</s>", unknown), file

    sizes = _sizes(arrays, path)
    vocabularies = imported.read_vocabularies(embeddings, tokens_of)
    notes = [f"{path.name}: activation and dropout, which it does not store, are relu and 0.1"]
    if unread := [key for key, off in UNREAD.items() if params.get(key) not in off]:
        notes.append(
            f"{params.file.name}: not read, so translations may differ: {', '.join(unread)}"
        )
    foreign = imported.ForeignModel(
        path,
        arrays,
        opennmt_tf(sizes["norm_first"]),
        {SOURCE, TARGET, OUTPUT},
        embeddings,
        vocabularies,
        sentencepiece=imported.find_sentencepiece(folder, tokenizer),
        options={
            **sizes,
            "num_heads": num_heads or _heads(folder),
            "position": "opennmt",
            "norm_epsilon": EPSILON,
            "attention_bias": True,
            "source_end": _reads_end(data),
        },
        decode=_search(params),
        notes=notes,
    )
    return imported.as_run(foreign)


def read_checkpoint(folder: pathlib.Path) -> tuple[dict[str, np.ndarray], pathlib.Path]:
    """The float32 arrays of the latest checkpoint by name, and the path of the checkpoint."""
    checkpoint = tf.train.latest_checkpoint(str(folder))
    if checkpoint is None:
        raise InputError(f"{folder} has no checkpoint: expected checkpoint and ckpt-….index.")
    path = pathlib.Path(checkpoint)
    try:
        reader = tf.train.load_checkpoint(checkpoint)
        names = reader.get_variable_to_shape_map()
        stored = {
            name.removesuffix(_END): reader.get_tensor(name).astype(np.float32)
            for name in names
            if name.startswith("model/") and name.endswith(_END) and ".OPTIMIZER_SLOT" not in name
        }
    except (tf.errors.OpError, RuntimeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read: {reason:.200}. Copy it again.") from error
    if SOURCE not in stored:
        raise InputError(
            f"{path} has no {SOURCE}, so it is not a checkpoint of a Transformer of OpenNMT-tf 2."
        )
    require_finite(stored, path)
    return stored, path


def _options(folder: pathlib.Path) -> tuple[Options, Options]:
    """The options data and params of the .yml file with the options of the training."""
    paths = sorted([*folder.glob("*.yml"), *folder.glob("*.yaml")])
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise InputError(
            f"{folder} must have one .yml file, the options of the training with data: "
            f"source_vocabulary and target_vocabulary, got {names}."
        )
    options = read_yaml(read_bytes(paths[0]), paths[0])
    for key in ("data", "params"):
        if not isinstance(options.setdefault(key, {}), dict):
            raise InputError(f"{paths[0]}: {key} must hold options, got {options[key]!r}.")
    return Options(options["data"], paths[0]), Options(options["params"], paths[0])


def _embeddings(arrays: Arrays, path: pathlib.Path) -> imported.Embeddings:
    source = arrays[SOURCE]
    target = arrays.get(TARGET, source)
    output = arrays[OUTPUT].T if OUTPUT in arrays else target
    for name, matrix in ((SOURCE, source), (TARGET, target), (OUTPUT, output)):
        if matrix.shape != (len(matrix), source.shape[-1]):
            raise InputError(f"{path}: {name} must be a matrix for size {source.shape[-1]}.")
    if len(output) != len(target):
        raise InputError(f"{path}: {OUTPUT} must have {len(target)} outputs.")
    return imported.Embeddings(source, target, output)


def _sizes(arrays: Arrays, path: pathlib.Path) -> dict[str, Any]:
    """The sizes of the model, and whether it is pre-norm."""
    hidden = [f"model/{side}/layers/0/ffn/layer/inner/bias" for side in ("encoder", "decoder")]
    for name in hidden:
        if name not in arrays:
            raise InputError(f"{path} has no {name}, which a Transformer needs.")
    layer = re.compile(r"model/(encoder|decoder)/layers/(\d+)/.*")
    numbers = [(parts[1], int(parts[2]) + 1) for parts in map(layer.fullmatch, arrays) if parts]
    depths = {side: max(x for of, x in numbers if of == side) for side in ("encoder", "decoder")}
    return {
        "d_model": arrays[SOURCE].shape[-1],
        "num_layers": depths["decoder"],
        "num_encoder_layers": depths["encoder"],
        "encoder_d_ff": len(arrays[hidden[0]]),
        "d_ff": len(arrays[hidden[1]]),
        "norm_first": "model/encoder/layer_norm/gamma" in arrays,
    }


def _heads(folder: pathlib.Path) -> int:
    """The number of heads of the model that model_description.py names."""
    path = folder / "model_description.py"
    text = read_bytes(path).decode("utf-8", "replace") if path.is_file() else ""
    name = _CATALOG_NAME.search(text)
    if name is None or name[1] not in HEADS:
        raise InputError(
            f"{path} must name one of {', '.join(HEADS)}, or give the number of attention heads "
            "with --num_heads, because the checkpoint does not have it."
        )
    return HEADS[name[1]]


def _reads_end(data: Options) -> bool:
    """Whether sources have an end token, by default not."""
    controls = data.get("source_sequence_controls") or {}
    if not isinstance(controls, dict) or controls.get("start"):
        raise InputError(
            f"{data.file}: source_sequence_controls must have no start, got {controls!r}. Sources "
            "with a start token are not supported."
        )
    return bool(controls.get("end"))


def _search(params: Options) -> DecodeConfig:
    longest = int(params.decimal("maximum_decoding_length", 250, 1))
    return DecodeConfig(
        beam_size=int(params.decimal("beam_width", 4, 1)),
        length_penalty=params.decimal("length_penalty", 0),
        max_length=longest,
        max_extra_length=longest,
        max_source_length=imported.LONGEST,
    )
