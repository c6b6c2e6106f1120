"""Writes a translator as a folder for CTranslate2: its weights and its vocabulary.

`standalone.py` writes the rest of the folder.

CTranslate2's layers compute the same functions as the layers of this project, so the weights only
change places. Three values replace defaults of CTranslate2:

- the size of a head, which may differ from d_model / num_heads;
- the ε of layer norms;
- the position encodings. They are stored as a table of length `positions`, because CTranslate2's
  sinusoids put all sines first and start at position 1.
"""

import importlib.util
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
import ml_dtypes
import numpy as np

from tf_transformer.config import DecodeConfig, LayerConfig, ModelConfig, Quantization
from tf_transformer.config.option import Effect, options_in
from tf_transformer.errors import InputError
from tf_transformer.export import standalone
from tf_transformer.imports.ctranslate2_model import table_name
from tf_transformer.imports.layouts import ctranslate2
from tf_transformer.inference.search import max_target_lengths
from tf_transformer.layers import PositionEncoding, RelativePosition, T5Position
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, UNK_ID

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

    from tf_transformer.inference.translator import Translator


def write(
    translator: "Translator",
    folder: pathlib.Path,
    quantization: Quantization,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Writes the folder from a translator with float32 weights.

    The quantization is the dtype of the stored weights. CTranslate2 computes in the same dtype if
    the device supports it, else in the next larger dtype. `facts` are for metadata.json. An
    `InputError` names an option that CTranslate2 lacks.
    """
    require_package()
    require_supported(translator.model.config, translator.config)
    count = positions(translator)
    # CTranslate2 needs torch to convert float32 to bfloat16, but accepts bfloat16 arrays.
    dtype = np.dtype(ml_dtypes.bfloat16 if quantization == "bfloat16" else np.float32)
    spec = specification(translator.model, count, dtype)
    pieces = translator.codec["target"].pieces
    spec.register_source_vocabulary(translator.codec["source"].pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.eos_token = pieces[UNK_ID], pieces[EOS_ID]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS_ID]
    spec.config.add_source_eos = translator.model.config.imported.source_end
    norm = translator.model.decoder.layers[0].attention_residual.norm
    spec.config.layer_norm_epsilon = norm.epsilon
    if translator.config.alignment_head == 0:  # CTranslate2 can only take first heads
        spec.decoder.alignment_layer = np.int16(translator.config.alignment_layer)
    spec.validate()
    spec.optimize(None if quantization in ("float32", "bfloat16") else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    own = {"positions": count, "weights": quantization, "left_out": standalone.LEFT_OUT}
    program = "tf_transformer.export.run_in_ctranslate2"
    standalone.write(translator, folder, program, {**(facts or {}), **own})


def require_package() -> None:
    """Raises an `InputError` when ctranslate2 is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise InputError(
            "--format ctranslate2 needs the package ctranslate2: "
            "pip install 'tf_transformer[ctranslate2]'"
        )


def require_supported(model: ModelConfig, decode: DecodeConfig) -> None:
    """Raises an `InputError` for a feature that CTranslate2 lacks."""
    if model.architecture != "transformer":
        raise InputError(
            f"CTranslate2 runs only Transformers, got model.architecture={model.architecture}. "
            "Use --format saved_model."
        )
    for name in ("attention", "decoder_attention"):
        if (kind := getattr(model, name)) not in ("full", "same"):
            raise InputError(
                f"CTranslate2 has only full attention, got model.{name}={kind}. Use --format "
                "saved_model."
            )
    if any(stack.key_dim != stack.value_dim for stack in (model.encoder, model.decoder)):
        raise InputError(
            "CTranslate2 needs equal sizes of a head's keys and values, but this model has "
            f"model.key_dim {model.decoder.key_dim} and model.imported.value_dim "
            f"{model.decoder.value_dim}. Use --format saved_model, or train with equal sizes."
        )
    if model.position == "alibi":
        raise InputError(
            "CTranslate2's encoders do not support model.position=alibi. Use --format saved_model, "
            "or train with another model.position."
        )
    # CTranslate2's coverage penalty uses one head of one layer. Its repetition penalty divides
    # logits, and ours multiplies log-probabilities. Its random numbers differ.
    lacking = {
        name: (value, [] if rules.off == () else str(rules.off).lower())
        for name, rules, value in options_in(decode)
        if "ctranslate2" not in rules.formats and rules.off not in (value, *Effect)
    }
    if lacking:
        given = ", ".join(f"decode.{name}={value}" for name, (value, _) in lacking.items())
        options = " ".join(f"--{name} {off}" for name, (_, off) in lacking.items())
        raise InputError(
            f"CTranslate2 does not support {given}. Use --format saved_model, or give {options} "
            "and set the options of CTranslate2 in your calls."
        )


def notes(decode: DecodeConfig) -> list[str]:
    """What CTranslate2's search does in another way, for the summary of an export."""
    if decode.early_stopping is True or decode.beam_size == 1:
        return []
    return [
        "CTranslate2 ends a search after beam_size finished translations (--early_stopping true): "
        "some translations may differ"
    ]


def positions(translator: "Translator") -> int:
    """The length of the position table, for the longest source and its longest translation."""
    source = translator.max_source_length
    limit = translator.model.max_target_length(source)
    return max(source, int(max_target_lengths(source, translator.config, limit)))


def specification(model: Transformer, count: int, dtype: np.dtype) -> "TransformerSpec":
    """The weights of a model in CTranslate2's structure, with tables of `count` positions."""
    from ctranslate2 import specs

    config = model.config
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(**stack_options(config.encoder)),
        specs.TransformerDecoderSpec(**stack_options(config.decoder)),
    )
    arrays: dict[str, Any] = {
        **ctranslate2(config.activation == "swiglu").arrays(model),
        "encoder/embeddings_0/weight": model.source_embedding.embeddings,
        "decoder/embeddings/weight": model.target_embedding.embeddings,
        "decoder/projection/weight": model.output_embedding.embeddings,
    }
    for side, position in (("encoder", model.source_position), ("decoder", model.target_position)):
        stack: LayerConfig = getattr(config, side)
        if hasattr(getattr(spec, side), "position_encodings"):
            table = position.encodings(keras.ops.arange(count), stack.d_model)
            table = np.zeros((count, stack.d_model)) if table is None else table
            arrays[table_name(side)] = table
        for number in range(stack.num_layers):  # all layers share one table of relative positions
            layer = f"{side}/layer_{number}/self_attention"
            arrays |= {f"{layer}/{name}": x for name, x in distance_tables(position).items()}
    for name, array in arrays.items():
        value = keras.ops.convert_to_numpy(array)
        is_number = value.dtype == np.int32
        _assign(spec, name, value if is_number else np.ascontiguousarray(value.astype(dtype)))
    return spec


def distance_tables(position: PositionEncoding) -> dict[str, Any]:
    """What self-attention has for positions that act on scores, by CTranslate2's names."""
    if isinstance(position, RelativePosition):
        return {
            "relative_position_keys": position.table,
            "relative_position_values": np.zeros(position.table.shape),
        }
    if isinstance(position, T5Position):
        return {
            "relative_attention_bias": position.table,
            "relative_attention_max_distance": np.int32(position.max_distance),
        }
    return {}


def _assign(spec: Any, name: str, array: np.ndarray) -> None:
    """Sets a variable of the structure by its name, in which layer_0 is the first of a list."""
    *parts, last = name.split("/")
    for part in parts:
        items, _, number = part.rpartition("_")
        spec = getattr(spec, part) if hasattr(spec, part) else getattr(spec, items)[int(number)]
    setattr(spec, last, array)


def stack_options(config: LayerConfig) -> dict[str, Any]:
    """The arguments of CTranslate2's structure for an encoder or decoder."""
    from ctranslate2.specs import common_spec

    activation = "swish" if config.activation == "swiglu" else config.activation
    groups = config.num_key_value_heads
    return {
        "num_layers": config.num_layers,
        "num_heads": config.num_heads,
        "num_heads_kv": None if groups == config.num_heads else groups,
        "head_dim": config.key_dim,
        "pre_norm": config.norm_first,
        "rms_norm": config.normalization == "rms_norm",
        "activation": common_spec.Activation[activation.upper()],
        "ffn_glu": config.activation == "swiglu",
        "rotary_dim": config.key_dim if config.position == "rotary" else None,
        "relative_position": config.position == "relative",
        "relative_attention_bias": config.position == "t5",
    }
