"""Writes a translator as a model in Marian's own files.

Marian's decoder reads the folder: `marian-decoder -c decoder.yml`. Marian has no ids of padding and
start, so the ids of the folder are two lower than the ids of the run. Source: Marian 1.12.
"""

import json
import pathlib
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import yaml

from tf_transformer.errors import InputError
from tf_transformer.export import to_marian
from tf_transformer.imports import marian_npz, marian_options
from tf_transformer.imports.layouts import marian
from tf_transformer.imports.marian_npz import EMBEDDING
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.sentencepiece_file import SpecialPieces, read_pieces, with_pieces
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

WEIGHTS = "model.npz"
# Values of options of the model that Marian's own files can hold.
VALUES = {
    "position": ("marian",),
    "decoder_attention": ("same", "full", "ssru"),
    "norm_first": (False, True),
}


def write(translator: "Translator", folder: pathlib.Path) -> str:
    """Writes the folder from a translator with float32 weights, and returns a summary."""
    model, decode = translator.model, translator.config
    require_supported(model)
    folder.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_dump(options(model)).encode() + b"\0"
    stored: dict[str, Any] = {
        marian_options.OPTIONS: np.frombuffer(content, np.int8),
        **arrays(model),
    }
    np.savez(folder / WEIGHTS, **stored)
    search = {
        "relative-paths": True,
        "models": [WEIGHTS],
        "vocabs": write_vocabularies(translator.codec, folder),
        "beam-size": decode.beam_size,
        "normalize": float(decode.length_penalty),
        "word-penalty": 0,
        "max-length-factor": float(decode.max_length_ratio),
        "max-length": translator.max_source_length,
        "max-length-crop": True,
        "allow-unk": not decode.avoid_unknown,
    }
    (folder / "decoder.yml").write_text(yaml.safe_dump(search, sort_keys=False), "utf-8")
    replaced = ("early_stopping",) if decode.beam_size == 1 else ()
    return to_marian.summary(translator, "marian_npz", "Marian", marian_npz.EPSILON, replaced)


def require_supported(model: Transformer) -> None:
    """Raises an `InputError` for a model that Marian's own files cannot hold."""
    to_marian.require_supported(model.config, "marian_npz", VALUES)
    if np.any(np.asarray(model.target_embedding.embeddings[BOS_ID])):
        raise InputError(
            "--format marian_npz needs a target that starts with a zero embedding, as Marian's do. "
            "Train with --model.imported.zero_start true --model.imported.output_bias true, or use "
            "--format marian."
        )


def options(model: Transformer) -> dict[str, Any]:
    """The options that Marian stores in the weights."""
    config = model.config
    fixed = {key: value for key, (value, _) in marian_options.FIXED.items()}
    norms = marian_options.PRE_NORM if config.norm_first else marian_options.POST_NORM
    has_ssru = config.decoder.attention == "ssru"
    decoder = marian_options.SSRU if has_ssru else marian_options.SELF_ATTENTION
    return {
        **fixed,
        **dict(zip(marian_options.OPERATIONS, norms, strict=True)),
        **dict(zip(marian_options.DECODER, decoder, strict=True)),
        **marian_options.UNUSED,
        "dim-vocabs": [model.source_vocabulary_size - EOS_ID, model.vocabulary_size - EOS_ID],
        "dim-emb": config.d_model,
        "enc-depth": config.encoder.num_layers,
        "dec-depth": config.decoder.num_layers,
        "transformer-heads": config.num_heads,
        "transformer-dim-ffn": config.encoder.d_ff,
        "transformer-decoder-dim-ffn": config.decoder.d_ff,
        "transformer-ffn-activation": config.activation,
        "tied-embeddings": config.tie_embeddings == "target",
        "tied-embeddings-src": False,
        "tied-embeddings-all": config.tie_embeddings == "all",
        "version": "v1.12.0",
    }


def arrays(model: Transformer) -> dict[str, np.ndarray]:
    """The weights by Marian's names, float32: matrices (inputs, outputs), vectors (1, outputs)."""
    layout = marian(model.config.norm_first, model.config.decoder.attention == "ssru")
    layers = layout.arrays(model, with_biases=True)
    embeddings = {"all": model.target_embedding}
    if model.config.tie_embeddings != "all":
        embeddings = {"source": model.source_embedding, "target": model.target_embedding}
    if model.config.tie_embeddings == "none":
        embeddings["output_transposed"] = model.output_embedding
    matrices = {
        EMBEDDING[name]: keras.ops.convert_to_numpy(embedding.embeddings)[EOS_ID:]
        for name, embedding in embeddings.items()
    }
    rows = {name: np.atleast_2d(array) for name, array in layers.items()}
    bias = rows.pop(layout.bias)[:, EOS_ID:]
    return {layout.bias: bias, **matrices, **rows}


def write_vocabularies(codec: Codec, folder: pathlib.Path) -> list[str]:
    """Writes the vocabularies, and returns the names of the files of source and target.

    Marian divides texts with a SentencePiece model (.spm) itself. A list of tokens (.yml)
    stands for vocabularies that no SentencePiece model holds. Then source.spm and target.spm divide
    the texts before Marian.
    """
    tokenizers = {side: codec[side] for side in ("source", "target")}
    # Whether SentencePiece alone gives the ids.
    are_models = codec.kind != "joint" and not any(
        x.vocabulary_size != x.num_pieces or x.tags or x.looked_up for x in tokenizers.values()
    )
    names = []
    for side, tokenizer in tokenizers.items():
        (folder / f"{side}.spm").write_bytes(without_padding(tokenizer))
        names.append(f"{side}.spm" if are_models else f"{side}.yml")
        if not are_models:
            tokens = ["</s>", "<unk>", *tokenizer.pieces[UNK_ID + 1 :]]
            lines = (f"{json.dumps(x)}: {i}\n" for i, x in enumerate(tokens))
            (folder / f"{side}.yml").write_text("".join(lines), "utf-8")
    if codec.kind != "separate":
        (folder / names[1]).unlink()
        return [names[0]] * 2
    return names


def without_padding(tokenizer: Tokenizer) -> bytes:
    """The SentencePiece model without the pieces of padding and start."""
    pieces = read_pieces(tokenizer.model)[EOS_ID:]
    end, unknown = (piece.text for piece in pieces[:2])
    special = SpecialPieces(unknown, "", end, "")
    return with_pieces(tokenizer.model, pieces, tokenizer.vocabulary_size - EOS_ID, special)
