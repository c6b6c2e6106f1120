"""A `transformer` of fairseq, as a run.

The folder has a checkpoint (.pt), which needs PyTorch, and a dictionary for each language, such as
dict.de.txt. Source: fairseq 0.12.
"""

import argparse
import pathlib
from typing import Any

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.imports import imported
from tf_transformer.imports.layouts import FAIRSEQ, Arrays
from tf_transformer.imports.options import Options, read_lines
from tf_transformer.imports.vocabulary import SpecialTokens
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
IGNORED = (
    *("encoder.version", "encoder.embed_positions._float_tensor"),
    *("decoder.version", "decoder.embed_positions._float_tensor"),
)
SIZES = {
    "d_model": "decoder_embed_dim",
    "num_layers": "decoder_layers",
    "num_encoder_layers": "encoder_layers",
    "d_ff": "decoder_ffn_embed_dim",
    "num_heads": "decoder_attention_heads",
    "encoder_d_model": "encoder_embed_dim",
    "encoder_d_ff": "encoder_ffn_embed_dim",
    "encoder_num_heads": "encoder_attention_heads",
}


def read(folder: pathlib.Path, tokenizer: str = "") -> imported.Imported:
    """Reads a folder; `tokenizer` is as in `find_sentencepiece`."""
    path = _checkpoint(folder)
    stored = load_torch(path, [argparse.Namespace])
    options, languages = _options(stored, path)
    arrays = {name: array for name, array in stored["model"].items() if name not in IGNORED}
    require_finite(arrays, path)
    embeddings, used = _embeddings(arrays, options)

    def tokens_of(side: str) -> tuple[list[str], SpecialTokens, pathlib.Path]:
        dictionary = folder / f"dict.{languages[f'{side}_language']}.txt"
        special = SpecialTokens(start="</s>", end="</s>", unknown="<unk>")
        return [*SPECIAL, *_tokens(dictionary)], special, dictionary

    foreign = imported.ForeignModel(
        path,
        arrays,
        FAIRSEQ,
        used,
        embeddings,
        vocabularies=imported.read_vocabularies(embeddings, tokens_of),
        sentencepiece=imported.find_sentencepiece(folder, tokenizer),
        options=_model_options(options),
        decode=DecodeConfig(  # the defaults of fairseq-generate
            beam_size=5,
            length_penalty=1.0,
            length_penalty_offset=0.0,
            max_length=200,
            max_extra_length=200,
            max_source_length=imported.LONGEST,
        ),
        notes=[],
        languages=languages,
    )
    return imported.as_run(foreign)


def _checkpoint(folder: pathlib.Path) -> pathlib.Path:
    """The checkpoint of a folder; checkpoint_best.pt if there are several."""
    paths = sorted(folder.glob("*.pt"))
    best = folder / "checkpoint_best.pt"
    if len(paths) != 1 and best not in paths:
        names = ", ".join(path.name for path in paths) or "none"
        raise InputError(f"{folder} must have one .pt file, or checkpoint_best.pt, got {names}.")
    return best if best in paths else paths[0]


def _options(stored: Any, path: pathlib.Path) -> tuple[Options, dict[str, str]]:
    """The options of the model, and its languages as options of the data.

    Older checkpoints have all options in `args`. Newer ones have groups in `cfg`, and may have a
    group for each side in the options of the model.
    """
    if not isinstance(stored, dict) or not isinstance(stored.get("model"), dict):
        raise InputError(f"{path} has no weights under model, so it is no checkpoint of fairseq.")
    groups = stored.get("cfg") or {}
    of_model = _as_dict(stored.get("args") or groups.get("model"))
    of_task = Options(_as_dict(groups.get("task")) or of_model, path)
    options = Options(of_model, path)
    for side in ("encoder", "decoder"):
        options |= {f"{side}_{key}": x for key, x in _as_dict(options.get(side)).items()}
    kind = options.get("arch") or options.get("_name") or "transformer"
    if not str(kind).startswith("transformer") or "_lm" in str(kind):
        raise InputError(f"{path} is a {kind}. Only a transformer of fairseq can be a run.")
    for key in OFF:
        if options.get(key):
            raise options.must_be(key, False)
    for key in ("source_lang", "target_lang"):
        if not isinstance(of_task.get(key), str):
            raise of_task.must_be(key, "a language")
    return options, {f"{side}_language": of_task[f"{side}_lang"] for side in ("source", "target")}


def _as_dict(options: Any) -> dict[str, Any]:
    if isinstance(options, argparse.Namespace):
        return vars(options)
    return options if isinstance(options, dict) else {}


def _embeddings(arrays: Arrays, options: Options) -> tuple[imported.Embeddings, set[str]]:
    """The embeddings, and the names of their arrays."""
    path = options.file
    shares_all = bool(options.get("share_all_embeddings"))
    shares_output = shares_all or bool(options.get("share_decoder_input_output_embed"))
    name = next((name for name in OUTPUT if name in arrays), TARGET)
    for of, size in ((SOURCE, "encoder"), (TARGET, "decoder"), (name, "decoder")):
        width = options.number(f"{size}_embed_dim")
        if of not in arrays or arrays[of].shape != (len(arrays[of]), width):
            got = arrays[of].shape if of in arrays else "nothing"
            raise InputError(f"{path}: {of} must be a matrix for size {width}, got {got}.")
    target = arrays[TARGET]
    if len(arrays[name]) != len(target) or (name == TARGET and not shares_output):
        raise InputError(f"{path} must have {OUTPUT[0]} with {len(target)} rows.")
    source = target if shares_all else arrays[SOURCE]
    output = target if shares_output else arrays[name]
    return imported.Embeddings(source, target, output), {SOURCE, TARGET, name}


def _model_options(options: Options) -> dict[str, Any]:
    """The fields of `ModelConfig` but for embeddings."""
    sizes = {field: options.number(key) for field, key in SIZES.items()}
    norms = [bool(options.get(f"{side}_normalize_before")) for side in ("encoder", "decoder")]
    if norms[0] != norms[1]:
        raise InputError(
            f"{options.file}: encoder_normalize_before and decoder_normalize_before must be equal."
        )
    return {
        **sizes,
        **options.dropout_rates(),
        "position": "fairseq",
        "activation": options.activation("activation_fn", "relu"),
        "norm_epsilon": 1e-5,
        "norm_first": norms[0],
        "attention_bias": True,
    }


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
