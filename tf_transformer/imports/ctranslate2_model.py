"""The sizes and variants of a model of CTranslate2, read from its variables."""

import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from tf_transformer.config import SINUSOIDS, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.imports.ctranslate2_file import ModelFile
from tf_transformer.imports.imported import Embeddings
from tf_transformer.imports.layouts import Arrays, array_of
from tf_transformer.layers.encodings import ENCODINGS
from tf_transformer.models.transformer import Transformer

SIDES = ("encoder", "decoder")
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}  # by CTranslate2's number
_HEADS = {"TransformerBase": 8, "TransformerBig": 16}  # of files without num_heads
# Numbers that the import reads, and numbers without an effect here: alignments from one layer.
_NUMBERS = re.compile(
    r"(?:(?:encoder|decoder)/)?(?:num_heads|pre_norm|activation|embeddings_merge|scale_embeddings"
    r"|embeddings(?:_0)?/multiply_by_sqrt_depth|alignment_layer|alignment_heads|alibi"
    r"|multi_query_attention|alibi_use_positive_positions|scale_alibi|start_from_zero_embedding"
    r"|layer_\d+/(?:self_)?attention/(?:head_dim|num_heads_kv|rotary_dim|rotary_interleave"
    r"|rotary_base|relative_attention_max_distance))|with_(?:source|target)_[be]os"
)
_TABLES = re.compile(
    r"(?:encoder|decoder)/(?:position_encodings/encodings"
    r"|layer_\d+/self_attention/relative_(?:position_keys|position_values|attention_bias))"
    r"|(?:encoder/embeddings(?:_0)?|decoder/embeddings|decoder/projection)/(?:weight|bias)"
)
_CLOSE = 0.01  # largest difference between a stored table of sinusoids and a computed one
T5_MAX_DISTANCE = 128


def used_names(arrays: Arrays) -> set[str]:
    """The names of the variables that belong to no layer."""
    return {name for name in arrays if _NUMBERS.fullmatch(name) or _TABLES.fullmatch(name)}


def model_options(file: ModelFile, embeddings: Embeddings, epsilon: float | None) -> dict[str, Any]:
    """The fields of `ModelConfig` but for embeddings; ε of the norms or CTranslate2's default."""
    arrays = file.arrays
    for name, value in (("decoder/alibi", 0), ("encoder/embeddings_merge", 0)):
        if _number(file, name, value) != value:
            raise InputError(f"{file.path}: {name} must be {value}. Such models are not supported.")
    encoder = _sizes(file, "encoder", embeddings.source.shape[1])
    decoder = _sizes(file, "decoder", embeddings.target.shape[1])
    for name in ("norm_first", "activation", "key_dim", "num_key_value_heads", "is_gated", "rms"):
        if encoder[name] != decoder[name]:
            raise InputError(
                f"{file.path}: encoder and decoder must have the same {name}, got {encoder[name]} "
                f"and {decoder[name]}."
            )
    is_gated, rms = decoder.pop("is_gated"), decoder.pop("rms")
    if is_gated and decoder["activation"] != "swish":
        raise InputError(f"{file.path}: gated layers must have the activation swish (2).")
    if is_gated:
        decoder["activation"] = "swiglu"
    own = ("d_model", "d_ff", "num_heads")
    return {
        **decoder,
        **{f"encoder_{name}": encoder[name] for name in own if encoder[name] != decoder[name]},
        "num_encoder_layers": encoder["num_layers"],
        "value_dim": decoder["key_dim"],
        "normalization": "rms_norm" if rms else "layer_norm",
        "norm_epsilon": epsilon or (1e-6 if rms else 1e-5),
        "attention_bias": "encoder/layer_0/self_attention/linear_0/bias" in arrays,
        **_position(file, decoder),
    }


def _sizes(file: ModelFile, side: str, d_model: int) -> dict[str, Any]:
    """Sizes and variants of the encoder or decoder."""
    layer, arrays = f"{side}/layer_0", file.arrays
    hidden = arrays.get(f"{layer}/ffn/linear_0/weight")
    if hidden is None or hidden.ndim != 2:
        raise InputError(f"{file.path} must have the matrix {layer}/ffn/linear_0/weight.")
    heads = _number(file, f"{side}/num_heads", _HEADS.get(file.kind, 8))
    scale = _number(file, f"{side}/scale_embeddings", 1)
    if scale not in (1, np.sqrt(d_model, dtype=np.float32)):
        raise InputError(
            f"{file.path}: {side}/scale_embeddings must be 1 or √d_model, got {scale}."
        )
    number = int(_number(file, f"{side}/activation", 0))
    if number not in ACTIVATIONS:
        expected = ", ".join(f"{key} ({name})" for key, name in ACTIVATIONS.items())
        raise InputError(f"{file.path}: {side}/activation must be one of {expected}, got {number}.")
    groups = 1 if _number(file, f"{side}/multi_query_attention", 0) else heads
    groups = int(_number(file, f"{layer}/self_attention/num_heads_kv", groups))
    size = int(_number(file, f"{layer}/self_attention/head_dim", 0))
    pattern = re.compile(rf"{side}/layer_(\d+)/.*")
    return {
        "num_layers": 1 + max(int(x[1]) for x in map(pattern.fullmatch, arrays) if x),
        "d_model": d_model,
        "d_ff": len(hidden),
        "num_heads": int(heads),
        "num_key_value_heads": 0 if groups == heads else groups,
        "key_dim": 0 if size * heads == d_model else size,
        "norm_first": bool(_number(file, f"{side}/pre_norm", 1)),
        "activation": ACTIVATIONS[number],
        "is_gated": f"{layer}/ffn/linear_0_noact/weight" in arrays,
        "rms": f"{layer}/ffn/layer_norm/beta" not in arrays,
    }


def _number(file: ModelFile, name: str, default: float) -> float:
    """A number. In older files, encoder and decoder share some of them."""
    array = file.arrays.get(name, file.arrays.get(name.rpartition("/")[2]))
    return default if array is None or array.size != 1 else float(array)


def _position(file: ModelFile, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the positions."""
    first, size = "encoder/layer_0/self_attention", sizes["key_dim"]
    size = size or sizes["d_model"] // sizes["num_heads"]
    if (table := file.arrays.get(f"{first}/relative_position_keys")) is not None:
        _require_shared(file, "relative_position_keys")
        values = [x for n, x in file.arrays.items() if n.endswith("/relative_position_values")]
        if any(x.any() for x in values):
            raise InputError(
                f"{file.path}: {first}/relative_position_values must be 0. Relative positions that "
                "change values are not supported."
            )
        return {"position": "relative", "max_relative_distance": len(table) // 2}
    if f"{first}/relative_attention_bias" in file.arrays:
        _require_shared(file, "relative_attention_bias")
        name = f"{first}/relative_attention_max_distance"
        if (distance := _number(file, name, T5_MAX_DISTANCE)) != T5_MAX_DISTANCE:
            raise InputError(f"{file.path}: {name} must be {T5_MAX_DISTANCE}, got {distance:g}.")
        return {"position": "t5"}
    if f"{first}/rotary_dim" in file.arrays:
        expected = {"rotary_dim": size, "rotary_interleave": 1, "rotary_base": 10_000}
        for key, value in expected.items():
            if (number := _number(file, f"{first}/{key}", value)) != value:
                raise InputError(f"{file.path}: {first}/{key} must be {value}, got {number:g}.")
        return {"position": "rotary"}
    return _absolute(file)


def _require_shared(file: ModelFile, name: str) -> None:
    """All layers of a side must have the same table."""
    for side in SIDES:
        tables = [
            x for n, x in file.arrays.items() if n.startswith(side) and n.endswith("/" + name)
        ]
        if not all(np.array_equal(x, tables[0]) for x in tables):
            raise InputError(f"{file.path}: the layers of the {side} must share one table {name}.")


def _absolute(file: ModelFile) -> dict[str, Any]:
    """The option of positions that are added to embeddings, from their tables."""
    names = list(map(table_name, SIDES))
    tables = [file.arrays[name] for name in names if name in file.arrays]
    if not tables:
        return {"position": "opennmt"}
    if len(tables) == 1:
        raise InputError(f"{file.path}: encoder and decoder must both have positions, or neither.")
    encoding, other = map(_encoding, tables)
    if encoding != other or (encoding == "learned" and len(tables[0]) != len(tables[1])):
        raise InputError(
            f"{file.path}: {names[0]} and {names[1]} must have the same kind and number of "
            "positions."
        )
    limit = {"max_length": len(tables[0])} if encoding == "learned" else {}
    return {"position": encoding, **limit}


def table_name(side: str) -> str:
    """The name of the table of positions of the encoder or decoder."""
    return f"{side}/position_encodings/encodings"


def _encoding(table: np.ndarray) -> str:
    """The value of `model.position` for a table (T, D)."""
    if not table.any():
        return "none"
    length, d_model = table.shape
    differences = {}
    for name in SINUSOIDS if d_model % 2 == 0 else ():
        encoding = ENCODINGS[name](ModelConfig(), is_causal=False)
        own = encoding.encodings(keras.ops.arange(length), d_model)
        differences[name] = np.abs(keras.ops.convert_to_numpy(own) - table).max()
    best = min(differences, key=differences.__getitem__, default="learned")
    return best if differences.get(best, 1) < _CLOSE else "learned"


def assign_positions(model: Transformer, file: ModelFile) -> None:
    """Assigns the tables of learned and relative positions, after a check of their shapes."""
    for side, position in zip(SIDES, (model.source_position, model.target_position), strict=True):
        layer = f"{side}/layer_0/self_attention"
        name = {
            "learned": table_name(side),
            "relative": f"{layer}/relative_position_keys",
            "t5": f"{layer}/relative_attention_bias",
        }.get(model.config.position)
        if name is None:
            continue
        shape = tuple(position.table.shape)
        position.table.assign(array_of(file.arrays, name, shape, file.path))
