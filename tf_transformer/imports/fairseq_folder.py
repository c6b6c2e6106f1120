"""A `transformer` of fairseq, as a run.

The folder has a checkpoint (.pt), which needs PyTorch, and a dictionary for each language, such as
dict.de.txt. Source: fairseq 0.12.
"""

import argparse
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.imports.imported import (
    ACTIVATIONS,
    LONGEST,
    Embeddings,
    Imported,
    make_codec,
    make_model,
    run_config,
)
from tf_transformer.imports.layout import require_all_used
from tf_transformer.imports.layouts import FAIRSEQ
from tf_transformer.imports.options import decimal, number, read_lines
from tf_transformer.imports.sentencepiece_models import sentencepiece_models
from tf_transformer.imports.vocabulary import SpecialTokens, Vocabulary
from tf_transformer.imports.weights import load_torch, require_finite

# Options that must be off: false, null or empty. fairseq has hundreds more, most for training.
OFF = (
    *("encoder_learned_pos", "decoder_learned_pos", "no_token_positional_embeddings"),
    *("no_scale_embedding", "layernorm_embedding", "adaptive_input", "adaptive_softmax_cutoff"),
    *("no_cross_attention", "cross_self_attention", "no_decoder_final_norm"),
)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # the first tokens, which no dictionary has
SOURCE, TARGET = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"  # (V, D)
OUTPUT = ("decoder.output_projection.weight", "decoder.embed_out")  # (V, D); before 0.9: embed_out
# Numbers of versions, and the dtype of the positions.
IGNORED = tuple(
    f"{side}.{name}"
    for side in ("encoder", "decoder")
    for name in ("version", "embed_positions._float_tensor")
)


def read(folder: pathlib.Path, tokenizer: str = "") -> Imported:
    """Reads a folder.

    Args:
        folder: a folder with a checkpoint and two dictionaries.
        tokenizer: SentencePiece models, for a folder without them; see `sentencepiece_models`.

    Raises:
        InputError: for a folder that has no such model, or a model that this project does not
            support. The message names the file and the key.
    """
    path = _checkpoint(folder)
    stored = load_torch(path, [argparse.Namespace])
    options, languages = _options(stored, path)
    arrays = {name: array for name, array in stored["model"].items() if name not in IGNORED}
    require_finite(arrays, path)
    embeddings, names = _embeddings(arrays, options, path)
    vocabularies = _vocabularies(folder, languages, embeddings)
    codec = make_codec(vocabularies, sentencepiece_models(folder, tokenizer))
    config = ModelConfig(
        **_model_options(options, path),
        tie_embeddings=embeddings.tying(codec),  # type: ignore[arg-type]
        output_bias=embeddings.has_bias(vocabularies[1]),
    )
    model = make_model(config, codec, vocabularies, embeddings)
    names |= FAIRSEQ.fill(model, arrays, path)
    require_all_used(arrays, names, path)
    decode = DecodeConfig(  # the defaults of fairseq-generate
        beam_size=5,
        length_penalty=1.0,
        length_penalty_offset=0.0,
        max_length=200,
        max_extra_length=200,
        max_source_length=LONGEST,
        average=1,
    )
    of_data = {f"{side}_language": languages[side] for side in ("source", "target")}
    return Imported(run_config(config, codec, decode, of_data), codec, model, vocabularies, [])


def _checkpoint(folder: pathlib.Path) -> pathlib.Path:
    """The checkpoint of a folder; checkpoint_best.pt if there are several."""
    paths = sorted(folder.glob("*.pt"))
    best = folder / "checkpoint_best.pt"
    if len(paths) != 1 and best not in paths:
        names = ", ".join(path.name for path in paths) or "none"
        raise InputError(f"{folder} must have one .pt file, or checkpoint_best.pt, got {names}.")
    return best if best in paths else paths[0]


def _options(stored: Any, path: pathlib.Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The options of the model, and its languages by side.

    Older checkpoints have all options in `args`. Newer ones have groups in `cfg`, and may have a
    group for each side in the options of the model.
    """
    if not isinstance(stored, dict) or not isinstance(stored.get("model"), dict):
        raise InputError(f"{path} has no weights under model, so it is no checkpoint of fairseq.")
    groups = stored.get("cfg") or {}
    of_model = _as_dict(stored.get("args") or groups.get("model"))
    of_task = _as_dict(groups.get("task")) or of_model
    options = dict(of_model)
    for side in ("encoder", "decoder"):
        options |= {f"{side}_{key}": x for key, x in _as_dict(options.get(side)).items()}
    kind = options.get("arch") or options.get("_name") or "transformer"
    if not str(kind).startswith("transformer") or "_lm" in str(kind):
        raise InputError(f"{path} is a {kind}. Only a transformer of fairseq can be a run.")
    for key in OFF:
        if got := options.get(key):
            raise InputError(f"{path}: {key} must be False, got {got!r}.")
    languages: dict[str, str] = {}
    for side in ("source", "target"):
        language = of_task.get(f"{side}_lang")
        if not isinstance(language, str):
            raise InputError(f"{path}: {side}_lang must be a language, got {language!r}.")
        languages[side] = language
    return options, languages


def _as_dict(options: Any) -> dict[str, Any]:
    if isinstance(options, argparse.Namespace):
        return vars(options)
    return options if isinstance(options, dict) else {}


def _embeddings(
    arrays: Mapping[str, np.ndarray], options: Mapping[str, Any], path: pathlib.Path
) -> tuple[Embeddings, set[str]]:
    """The embeddings, and the names of their arrays."""
    shares_all = bool(options.get("share_all_embeddings"))
    shares_output = shares_all or bool(options.get("share_decoder_input_output_embed"))
    name = next((name for name in OUTPUT if name in arrays), TARGET)
    for of, size in ((SOURCE, "encoder"), (TARGET, "decoder"), (name, "decoder")):
        width = number(options, f"{size}_embed_dim", path)
        if of not in arrays or arrays[of].shape != (len(arrays[of]), width):
            got = arrays[of].shape if of in arrays else "nothing"
            raise InputError(f"{path}: {of} must be a matrix for size {width}, got {got}.")
    target = arrays[TARGET]
    if len(arrays[name]) != len(target) or (name == TARGET and not shares_output):
        raise InputError(f"{path} must have {OUTPUT[0]} with {len(target)} rows.")
    source = target if shares_all else arrays[SOURCE]
    output = target if shares_output else arrays[name]
    return Embeddings(source, target, output, None), {SOURCE, TARGET, name}


def _model_options(options: Mapping[str, Any], path: pathlib.Path) -> dict[str, Any]:
    """The fields of `ModelConfig` but for embeddings."""
    sizes = {
        field: number(options, key, path)
        for field, key in {
            "d_model": "decoder_embed_dim",
            "num_layers": "decoder_layers",
            "num_encoder_layers": "encoder_layers",
            "d_ff": "decoder_ffn_embed_dim",
            "num_heads": "decoder_attention_heads",
            "encoder_d_model": "encoder_embed_dim",
            "encoder_d_ff": "encoder_ffn_embed_dim",
            "encoder_num_heads": "encoder_attention_heads",
        }.items()
    }
    norms = [bool(options.get(f"{side}_normalize_before")) for side in ("encoder", "decoder")]
    if norms[0] != norms[1]:
        raise InputError(
            f"{path}: encoder_normalize_before and decoder_normalize_before must be equal."
        )
    activation = options.get("activation_fn", "relu")
    if activation not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        raise InputError(f"{path}: activation_fn must be one of {expected}, got {activation!r}.")
    return {
        **sizes,
        "dropout_rate": decimal(options, "dropout", 0.1, 0, path),
        "attention_dropout_rate": decimal(options, "attention_dropout", 0, 0, path),
        "feed_forward_dropout_rate": decimal(options, "activation_dropout", 0, 0, path),
        "position": "fairseq",
        "activation": ACTIVATIONS[activation],
        "norm_epsilon": 1e-5,
        "norm_first": norms[0],
        "attention_bias": True,
    }


def _vocabularies(
    folder: pathlib.Path, languages: Mapping[str, str], embeddings: Embeddings
) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies of source and target; one object for a shared vocabulary."""
    special = SpecialTokens(start="</s>", end="</s>", unknown="<unk>")
    vocabularies = []
    for side, matrix in (("source", embeddings.source), ("target", embeddings.target)):
        path = folder / f"dict.{languages[side]}.txt"
        tokens = [*SPECIAL, *_tokens(path)]
        vocabularies.append(Vocabulary.of_list(tokens, len(matrix), special, str(path)))
    source, target = vocabularies
    return (target, target) if source == target else (source, target)


def _tokens(path: pathlib.Path) -> list[str]:
    """The tokens of a dictionary: a token and its frequency in each line."""
    tokens = []
    for place, line in enumerate(read_lines(path), 1):
        token, space, count = line.rpartition(" ")
        if not space or not count.isdecimal():
            raise InputError(
                f"{path}, line {place}: expected a token and its frequency, like house 17, got "
                f"{line[:60]!r}."
            )
        tokens.append(token)
    return tokens
