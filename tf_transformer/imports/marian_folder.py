"""A Marian or OPUS-MT model in a folder of Transformers, as a run.

The folder has config.json, generation_config.json (newer models), model.safetensors or
pytorch_model.bin, source.spm and target.spm, vocab.json, and target_vocab.json for two
vocabularies. Sources: `modeling_marian.py` and `tokenization_marian.py` of Transformers 5.24.
"""

import pathlib
from typing import Any

import numpy as np

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.layouts import TRANSFORMERS, Arrays
from tf_transformer.imports.options import Options, read_json
from tf_transformer.imports.vocabulary import Vocabulary
from tf_transformer.imports.weights import read_weights

EMBEDDINGS = (
    *("model.shared.weight", "lm_head.weight"),
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
)
# Sinusoids, which are computed.
COMPUTED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
# Keys of config.json with a meaning that only one value has here.
FIXED: dict[str, tuple[Any, ...]] = {
    "model_type": ("marian", "bart"),
    "scale_embedding": (True,),
    "normalize_before": (False, None),
    "normalize_embedding": (False, None),
    "add_final_layer_norm": (False, None),
    "static_position_embeddings": (True,),
    "is_encoder_decoder": (True,),
    "forced_bos_token_id": (None,),
}
# Keys that the import reads.
READ = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim"),
    *("encoder_attention_heads", "decoder_attention_heads", "activation_function", "vocab_size"),
    *("decoder_vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id"),
    *("share_encoder_decoder_embeddings", "dropout", "attention_dropout", "activation_dropout"),
    *("max_length", "num_beams", "length_penalty", "early_stopping"),
    *("bad_words_ids", "forced_eos_token_id"),
    *("architectures", "tie_word_embeddings", "max_position_embeddings"),
)
# Options of generation that other values than zero and null turn off.
OFF: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("repetition_penalty", "encoder_repetition_penalty", "guidance_scale"), (None, 1)
    ),
    **dict.fromkeys(("num_return_sequences", "num_beam_groups"), (None, 1)),
    **dict.fromkeys(("max_new_tokens", "max_time"), (None,)),
}
# Options that act only with learned positions, sampling or a second model, and options of results.
IDLE = (
    *("extra_pos_embeddings", "temperature", "top_k", "top_p", "top_h", "min_p", "typical_p"),
    *("epsilon_cutoff", "eta_cutoff", "num_assistant_tokens", "num_assistant_tokens_schedule"),
    *("assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind"),
    *("output_scores", "output_logits", "return_dict_in_generate", "torchscript"),
)
# Keys without an effect on translations.
IGNORED = (
    *("_name_or_path", "_num_labels", "add_bias_logits", "bos_token_id", "classif_dropout"),
    *("classifier_dropout", "decoder_layerdrop", "encoder_layerdrop", "id2label", "label2id"),
    *("init_std", "num_hidden_layers", "torch_dtype", "dtype", "transformers_version"),
    *("use_cache", "output_past", "gradient_checkpointing", "num_labels", "is_decoder"),
    *("renormalize_logits", "_from_model_config"),
    *("output_attentions", "output_hidden_states", "return_dict", "problem_type"),
    *("tokenizer_class", "finetuning_task", "sep_token_id", "chunk_size_feed_forward"),
    *("_attn_implementation_autoset", "_attn_implementation", "attn_implementation"),
    *("_commit_hash", "name_or_path", "cache_implementation", "disable_compile"),
    "task_specific_params",
)
SIZES = {
    "d_model": "d_model",
    "num_encoder_layers": "encoder_layers",
    "num_decoder_layers": "decoder_layers",
    "num_layers": "decoder_layers",
    "d_ff": "decoder_ffn_dim",
    "encoder_d_ff": "encoder_ffn_dim",
    "num_heads": "decoder_attention_heads",
    "encoder_num_heads": "encoder_attention_heads",
}


def read(folder: pathlib.Path) -> imported.Imported:
    """Reads a folder."""
    options, notes = _options(folder)
    arrays, file = read_weights(folder)
    path = folder / file
    source, target, output = _matrices(arrays, options, path)
    vocabularies = _vocabularies(folder, options, len(source), len(target))
    if TRANSFORMERS.bias not in arrays:
        notes.append(f"{file} has no {TRANSFORMERS.bias}: the bias of the logits is 0")
    if output is not target:
        notes.append(f"{file}: lm_head.weight differs from the embeddings, so it is not tied")
    foreign = imported.ForeignModel(
        path,
        arrays,
        TRANSFORMERS,
        {*EMBEDDINGS, *COMPUTED},
        imported.Embeddings(source, target, output),
        vocabularies,
        sentencepiece=(folder / "source.spm", folder / "target.spm"),
        options={
            **{field: options.number(key, least=0) for field, key in SIZES.items()},
            **options.dropout_rates(),
            "position": "sinusoidal_halves",
            "activation": options.activation("activation_function", "swish"),
            "norm_epsilon": 1e-5,
            "attention_bias": True,
        },
        decode=_search(options),
        notes=notes,
        languages=_languages(folder),
    )
    return imported.as_run(foreign)


def _options(folder: pathlib.Path) -> tuple[Options, list[str]]:
    """The keys of config.json and generation_config.json, checked; and notes."""
    if (folder / "source.bpe").is_file():
        raise InputError(
            f"{folder / 'source.bpe'}: models with pieces of subword-nmt are not supported. Take a "
            "model with source.spm."
        )
    path = folder / "config.json"
    options, notes = _checked(path)
    if "MarianMTModel" not in (options.get("architectures") or ["MarianMTModel"]):
        raise InputError(
            f"{path}: architectures must have MarianMTModel, got {options['architectures']}."
        )
    generation = folder / "generation_config.json"
    if generation.is_file():
        of_generation, further = _checked(generation)
        options |= of_generation
        notes += further
    if "activation_function" not in options:
        notes.append(f"{path} has no activation_function: swish, as in models of 2020")
    options.file = folder / "config.json or generation_config.json"
    return options, notes


def _checked(path: pathlib.Path) -> tuple[Options, list[str]]:
    """The keys of a file, all of which the import understands, and notes."""
    options = Options(read_json(path), path)
    for key, values in FIXED.items():
        if key in options and options[key] not in values:
            raise options.must_be(key, " or ".join(map(repr, values)))
    return options, options.without_effect((*FIXED, *READ, *IGNORED), OFF, IDLE)


def _matrices(arrays: Arrays, options: Options, path: pathlib.Path) -> list[np.ndarray]:
    """The embeddings of source, target and output; one object for equal matrices.

    A matrix that the file has counts, also if the configuration says that it is tied. A matrix that
    the file lacks is the shared one.
    """
    shared, output, source, target = (arrays.get(name) for name in EMBEDDINGS)
    if options.get("share_encoder_decoder_embeddings", True):
        source = _first(source, shared, target, output)
        target = _first(target, shared, source)
    target = _first(target, output)
    output = _first(output, shared, target)
    if source is None or target is None or output is None:
        raise InputError(f"{path} has no embeddings: expected one of {', '.join(EMBEDDINGS)}.")
    for matrix in (source, target, output):
        _require_shape(matrix, (len(matrix), options.get("d_model")), "embeddings", path)
    _require_shape(output, target.shape, "lm_head.weight", path)
    target = source if np.array_equal(source, target) else target
    return [source, target, target if np.array_equal(output, target) else output]


def _first(*matrices: np.ndarray | None) -> np.ndarray | None:
    return next((matrix for matrix in matrices if matrix is not None), None)


def _require_shape(
    array: np.ndarray, shape: tuple[Any, ...], name: str, path: pathlib.Path
) -> None:
    if array.shape != shape:
        raise InputError(f"{path}: {name} must have the shape {shape}, got {array.shape}.")


def _vocabularies(
    folder: pathlib.Path, options: Options, source_size: int, target_size: int
) -> imported.Vocabularies:
    pad = options.number("pad_token_id", least=0)
    start = options.get("decoder_start_token_id")
    start = pad if start is None else start
    path = folder / "vocab.json"
    source = target = Vocabulary.of(read_json(path), source_size, pad, start, str(path))
    path = folder / "target_vocab.json"
    if path.is_file() or not options.get("share_encoder_decoder_embeddings", True):
        target = Vocabulary.of(read_json(path), target_size, pad, start, str(path))
    forbidden = [[pad]], [[pad], [start]]
    for key, values in {
        "eos_token_id": (target.end,),
        "forced_eos_token_id": (target.end,),
        "bad_words_ids": forbidden,
    }.items():
        if options.get(key) not in (None, *values):
            raise options.must_be(key, values[0])
    return source, target


def _search(options: Options) -> DecodeConfig:
    longest = int(options.decimal("max_length", imported.LONGEST, 2))
    early_stopping = options.get("early_stopping")
    if early_stopping is None:
        early_stopping = False  # Transformers' default
    if not (isinstance(early_stopping, bool) or early_stopping == "never"):
        raise options.must_be("early_stopping", "true, false or 'never'")
    return DecodeConfig(
        beam_size=int(options.decimal("num_beams", 1, 1)),
        length_penalty=options.decimal("length_penalty", 1),
        length_penalty_offset=0.0,
        early_stopping=early_stopping,
        max_length=longest - 1,  # Transformers counts the start token
        max_extra_length=longest,
        max_source_length=imported.LONGEST,
    )


def _languages(folder: pathlib.Path) -> dict[str, str]:
    """The languages in tokenizer_config.json, as options of the data."""
    path = folder / "tokenizer_config.json"
    stored = read_json(path) if path.is_file() else {}
    return {
        f"{side}_language": stored[f"{side}_lang"]
        for side in ("source", "target")
        if isinstance(stored.get(f"{side}_lang"), str)
    }
