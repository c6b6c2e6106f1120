"""Writes a translator as a Marian model in a folder of Transformers.

`MarianMTModel` and `MarianTokenizer` of Transformers load the folder. The ids are this project's
ids. Marian's sinusoids have all sines first, and the paper alternates sines and cosines. So the
columns of the model change places, which changes no logit.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export.left_behind import in_words, left_behind
from tf_transformer.imports.layouts import TRANSFORMERS
from tf_transformer.imports.marian_folder import BIAS
from tf_transformer.imports.weights import SAFETENSORS
from tf_transformer.layers import BiasedEmbedding
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

POSITIONS = ("sinusoidal", "sinusoidal_halves")
EPSILON = 1e-5  # of `MarianMTModel`, which has no option for it


def write(translator: "Translator", folder: pathlib.Path) -> str:
    """Writes the folder.

    Args:
        translator: the translator, with float32 weights.
        folder: the folder to write; made if missing.

    Returns:
        a summary.

    Raises:
        InputError: for a model that Marian's layout cannot hold.
    """
    from safetensors.numpy import save_file

    model, codec, decode = translator.model, translator.codec, translator.config
    require_supported(model.config, "marian", POSITIONS)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights(model), folder / SAFETENSORS)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(codec[side].model)
    separate = codec.kind == "separate"
    _write_json(folder / "vocab.json", vocabulary(codec["source"]))
    if separate:
        _write_json(folder / "target_vocab.json", vocabulary(codec["target"]))
    _write_json(folder / "config.json", configuration(model))
    generation = {
        "num_beams": decode.beam_size,
        "length_penalty": decode.length_penalty,
        "early_stopping": decode.early_stopping,
        "max_length": (decode.max_length or translator.max_source_length) + 1,
        "bad_words_ids": [[PAD_ID], [BOS_ID]],
        "decoder_start_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "pad_token_id": PAD_ID,
    }
    _write_json(folder / "generation_config.json", generation)
    special = {
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": codec["source"].piece(PAD_ID),
    }
    tokenizer = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate}
    tokenizer |= {"model_max_length": translator.max_source_length, **special}
    tokenizer |= {"clean_up_tokenization_spaces": False}  # the texts of the run keep their spaces
    _write_json(folder / "tokenizer_config.json", tokenizer)
    _write_json(folder / "special_tokens_map.json", special)
    comes_first = 0 < decode.max_length <= decode.max_extra_length
    replaced = ("max_length_ratio", "max_extra_length") if comes_first else ()
    lost = left_behind(translator, "marian", ("length_penalty_offset", *replaced))
    return summary(translator, "Transformers", EPSILON, lost)


def summary(translator: "Translator", program: str, epsilon: float, lost: Mapping[str, Any]) -> str:
    """The number of parameters, and what a program computes in another way.

    Args:
        translator: the exported translator.
        program: the name of the program.
        epsilon: ε of its layer normalization.
        lost: the options that the program does not have; see `left_behind`.
    """
    model = translator.model
    notes = [f"{model.count_params():,} parameters"]
    if model.config.norm_epsilon != epsilon:
        notes.append(
            f"{program} normalizes with ε {epsilon}, and the run with "
            f"{model.config.norm_epsilon}: logits differ slightly"
        )
    if translator.config.length_penalty_offset:
        notes.append(f"{program} has the length penalty length^α: long beams may differ")
    if lost:
        notes.append(
            f"{program} does not have these options, so translations may differ: {in_words(lost)}"
        )
    return "; ".join(notes)


def require_supported(config: ModelConfig, format: str, positions: tuple[str, ...]) -> None:
    """Raises an `InputError` for an option that Marian's layout does not have.

    Args:
        config: the configuration of the model.
        format: the value of --format, for the error.
        positions: the values of `model.position` that the format can hold.
    """
    for stack in (config.encoder, config.decoder):
        sizes = (stack.key_dim * stack.num_heads, stack.value_dim * stack.num_heads)
        if sizes != (stack.d_model, stack.d_model) or stack.d_model != config.d_model:
            raise InputError(
                f"--format {format} needs heads of the size d_model / num_heads, and the same "
                "d_model in encoder and decoder. Use --format saved_model."
            )
        if stack.num_key_value_heads != stack.num_heads:
            raise InputError(
                f"--format {format} has no shared heads of keys and values. Use --format "
                "saved_model."
            )
    for name, values in {
        "architecture": ("transformer",),
        "position": positions,
        "attention": ("full",),
        "decoder_attention": ("same", "full"),
        "activation": ("relu", "gelu", "swish"),
        "normalization": ("layer_norm",),
        "norm_first": (False,),
        "source_end": (True,),
    }.items():
        if getattr(config, name) not in values:
            raise InputError(
                f"--format {format} needs model.{name} {' or '.join(map(str, values))}, got "
                f"{getattr(config, name)}. Use --format saved_model."
            )


def configuration(model: Transformer) -> dict[str, Any]:
    """The content of config.json."""
    config = model.config
    encoder, decoder = config.encoder, config.decoder
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "activation_function": config.activation,
        "d_model": config.d_model,
        "encoder_layers": encoder.num_layers,
        "decoder_layers": decoder.num_layers,
        "encoder_ffn_dim": encoder.d_ff,
        "decoder_ffn_dim": decoder.d_ff,
        "encoder_attention_heads": encoder.num_heads,
        "decoder_attention_heads": decoder.num_heads,
        "dropout": config.dropout_rate,
        "attention_dropout": config.attention_dropout_rate,
        "activation_dropout": config.feed_forward_dropout_rate,
        "vocab_size": model.source_vocabulary_size,
        "decoder_vocab_size": model.vocabulary_size,
        "share_encoder_decoder_embeddings": config.tie_embeddings == "all",
        "tie_word_embeddings": config.tie_embeddings != "none",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "is_encoder_decoder": True,
        "max_position_embeddings": 1024,
        "decoder_start_token_id": BOS_ID,
        "pad_token_id": PAD_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
    }


def vocabulary(tokenizer: Tokenizer) -> dict[str, int]:
    """The content of vocab.json: ids by piece."""
    pieces = [tokenizer.piece(token) for token in range(tokenizer.vocabulary_size)]
    pieces[EOS_ID], pieces[UNK_ID] = "</s>", "<unk>"
    return {piece: token for token, piece in enumerate(pieces)}


def weights(model: Transformer) -> dict[str, np.ndarray]:
    """The weights by their names in Transformers, float32."""
    columns = np.arange(model.config.d_model)
    if model.config.position == "sinusoidal":
        columns = np.concatenate([columns[0::2], columns[1::2]])
    arrays = {
        name: _with_columns(name, array, columns)
        for name, array in TRANSFORMERS.arrays(model, with_biases=True).items()
    }
    source, target, output = (
        np.ascontiguousarray(keras.ops.convert_to_numpy(each.embeddings)[:, columns])
        for each in (model.source_embedding, model.target_embedding, model.output_embedding)
    )
    if model.config.tie_embeddings == "all":
        arrays["model.shared.weight"] = target
    else:
        arrays["model.encoder.embed_tokens.weight"] = source
        arrays["model.decoder.embed_tokens.weight"] = target
    if model.config.tie_embeddings == "none":
        arrays["lm_head.weight"] = output
    bias = np.zeros(model.vocabulary_size, np.float32)
    if isinstance(model.output_embedding, BiasedEmbedding):
        bias = keras.ops.convert_to_numpy(model.output_embedding.bias)
    arrays[BIAS] = bias[None]
    return arrays


def _with_columns(name: str, array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """An array with the model's columns in another order."""
    layer = name.rpartition(".")[0]
    if layer.endswith(("out_proj", "fc2", "layer_norm")):
        return np.ascontiguousarray(array[columns])
    return np.ascontiguousarray(array[:, columns]) if array.ndim == 2 else array


def _write_json(path: pathlib.Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
