"""Writes a translator as a Marian model in a folder of Transformers.

`MarianMTModel` and `MarianTokenizer` of Transformers load the folder. The ids are this project's
ids. Marian's sinusoids have all sines first, and the paper alternates sines and cosines. So the
columns of the model change places, which changes no logit.
"""

import json
import operator
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tf_transformer.config import ModelConfig
from tf_transformer.config.decode import REQUIRED
from tf_transformer.config.option import Effect, Format, options_in
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.imports.layouts import TRANSFORMERS
from tf_transformer.imports.weights import SAFETENSORS
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

# Values of options of the model that `MarianMTModel` can hold.
VALUES = {
    "position": ("sinusoidal", "sinusoidal_halves"),
    "decoder_attention": ("same", "full"),
    "norm_first": (False,),
}
EPSILON = 1e-5  # of `MarianMTModel`, which has no option for it


def write(translator: "Translator", folder: pathlib.Path) -> str:
    """Writes the folder from a translator with float32 weights, and returns a summary."""
    from safetensors.numpy import save_file

    model, codec, decode = translator.model, translator.codec, translator.config
    require_supported(model.config, "marian", VALUES)
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
    pad = codec["source"].piece(PAD_ID)
    special = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": pad}
    tokenizer = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": separate}
    tokenizer |= {"model_max_length": translator.max_source_length, **special}
    tokenizer |= {"clean_up_tokenization_spaces": False}  # the texts of the run keep their spaces
    _write_json(folder / "tokenizer_config.json", tokenizer)
    _write_json(folder / "special_tokens_map.json", special)
    comes_first = 0 < decode.max_length <= decode.max_extra_length
    replaced = ("max_length_ratio", "max_extra_length") if comes_first else ()
    return summary(translator, "marian", "Transformers", EPSILON, replaced)


def summary(
    translator: "Translator", format: Format, program: str, epsilon: float, replaced: Sequence[str]
) -> str:
    """The number of parameters, and what the program of a format computes in another way.

    `epsilon` is ε of its layer normalization, and `replaced` are options without effect in this
    export, besides those that the format lacks.
    """
    model = translator.model
    notes = [f"{model.count_params():,} parameters"]
    if (own := model.config.imported.norm_epsilon) != epsilon:
        notes.append(
            f"{program} normalizes with ε {epsilon}, and the run with {own}: logits differ slightly"
        )
    if translator.config.length_penalty_offset:
        notes.append(f"{program} has the length penalty length^α: long beams may differ")
    if translator.config.target_tag == REQUIRED:
        tags = ", ".join(sorted(translator.codec["source"].tags))
        notes.append(f"{program} does not refuse a text that starts with none of the tags {tags}")
    if names := ", ".join(lost_options(translator, format, replaced)):
        notes.append(f"{program} does not have these options, so translations may differ: {names}")
    return "; ".join(notes)


def lost_options(translator: "Translator", format: Format, replaced: Sequence[str]) -> list[str]:
    """The options of a run that its format lacks and that change texts, with their values.

    They read like "lower_capitals true". The summary says what replaces the length penalty.
    """
    own: dict[str, Any] = dict(translator.own_options)
    of_texts = options_in(TranslationOptions(**own))
    lost = []
    for name, rules, value in (*options_in(translator.config), *of_texts):
        is_silent = rules.off in (None, Effect.CHOICE, Effect.SPEED) or format in rules.formats
        if (
            is_silent
            or value in (rules.off, REQUIRED)
            or name in ("length_penalty_offset", *replaced)
        ):
            continue
        text = " ".join(value) if isinstance(value, tuple) else str(value)
        lost.append(f"{name} {text.lower() if isinstance(value, bool) else text}")
    return lost


def require_supported(
    config: ModelConfig, format: str, values: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raises an `InputError` for an option that Marian's layout does not have.

    `values` are those of further options of the model that the format can hold.
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
    every = {
        "architecture": ("transformer",),
        "attention": ("full",),
        "activation": ("relu", "gelu", "swish"),
        "normalization": ("layer_norm",),
        "imported.source_end": (True,),
    }
    for name, supported in {**every, **values}.items():
        if (value := operator.attrgetter(name)(config)) not in supported:
            raise InputError(
                f"--format {format} needs model.{name} {' or '.join(map(str, supported))}, got "
                f"{value}. Use --format saved_model."
            )


def configuration(model: Transformer) -> dict[str, Any]:
    """The content of config.json."""
    config, encoder, decoder = model.config, model.config.encoder, model.config.decoder
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
    pieces = tokenizer.pieces
    pieces[EOS_ID], pieces[UNK_ID] = "</s>", "<unk>"
    return {piece: token for token, piece in enumerate(pieces)}


def weights(model: Transformer) -> dict[str, np.ndarray]:
    """The weights by their names in Transformers, float32."""
    columns = np.arange(model.config.d_model)
    if model.config.position == "sinusoidal":
        columns = np.concatenate([columns[0::2], columns[1::2]])
    arrays = TRANSFORMERS.arrays(model, with_biases=True)
    for name, array in arrays.items():
        if name.rpartition(".")[0].endswith(("out_proj", "fc2", "layer_norm")):
            arrays[name] = np.ascontiguousarray(array[columns])
        elif array.ndim == 2:
            arrays[name] = np.ascontiguousarray(array[:, columns])
    source, target, output = (
        np.ascontiguousarray(keras.ops.convert_to_numpy(embedding.embeddings)[:, columns])
        for embedding in (model.source_embedding, model.target_embedding, model.output_embedding)
    )
    if model.config.tie_embeddings == "all":
        arrays["model.shared.weight"] = target
    else:
        arrays["model.encoder.embed_tokens.weight"] = source
        arrays["model.decoder.embed_tokens.weight"] = target
    if model.config.tie_embeddings == "none":
        arrays["lm_head.weight"] = output
    arrays[TRANSFORMERS.bias] = arrays.pop(TRANSFORMERS.bias)[None]  # (1, V)
    return arrays


def _write_json(path: pathlib.Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
