"""Writes a translator as a CTranslate2 model: its weights, its vocabulary, how it searches.

CTranslate2 is an inference engine for processors and GPUs that needs no TensorFlow. A folder holds

    model.bin  config.json  shared_vocabulary.json    what CTranslate2 reads
    tokenizer.model                                   SentencePiece's model, which makes the tokens
    search.json                                       the run's search, for run_in_ctranslate2.py

CTranslate2's layers compute what ours do; weights only change places. Three things it would take
to be otherwise are written down: the size of a head, which need not be d_model / num_heads; the ε
of layer norms; and sinusoids as a table, because its own have all sines first and start at
position 1. A table ends: `positions` says where.
"""

import importlib.util
import json
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import ml_dtypes
import numpy as np

from tf_transformer.config import DecodeConfig, ModelConfig, Quantization
from tf_transformer.errors import InputError
from tf_transformer.layers import LayerNorm, MultiHeadAttention
from tf_transformer.models.transformer import Transformer
from tf_transformer.search import max_target_lengths
from tf_transformer.special_ids import BOS_ID, EOS_ID, UNK_ID
from tf_transformer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

    from tf_transformer.translator import Translator

# What run_in_ctranslate2.py needs to know of a `DecodeConfig`.
SEARCH_OPTIONS = (
    *("beam_size", "length_penalty", "max_extra_length", "max_length_ratio", "max_length"),
    *("min_length", "min_length_ratio", "no_repeat_ngram_size", "excluded_tokens"),
    "avoid_unknown",
)
# What no option of CTranslate2's search stands for, and the value that asks for nothing.
# Its coverage penalty looks at one head of one layer, its repetition penalty divides logits where
# ours multiplies log-probabilities, and its random numbers are its own.
NOT_EXPRESSIBLE = {"sampling": False, "coverage_penalty": 0.0, "repetition_penalty": 1.0}


def write(translator: "Translator", folder: pathlib.Path, quantization: Quantization) -> None:
    """Writes the folder of a CTranslate2 model.

    Args:
        translator: what to write, with float32 weights.
        folder: where to; made if missing.
        quantization: how weights are kept. CTranslate2 computes in the same type where the
            processor or GPU has it, and in the next larger one where not.

    Raises:
        InputError: when `require_expressible` finds something, or the package is missing.
    """
    require_package()
    require_expressible(translator.model.config, translator.config)
    count = positions(translator)
    # CTranslate2 needs torch to make bfloat16 of float32, and takes what is bfloat16 already.
    dtype = np.dtype(ml_dtypes.bfloat16 if quantization == "bfloat16" else np.float32)
    spec = specification(translator.model, count, dtype)
    pieces = vocabulary(translator.tokenizer)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.eos_token = pieces[UNK_ID], pieces[EOS_ID]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS_ID]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = translator.model.decoder.layers[0].self_residual.norm.epsilon
    spec.validate()
    spec.optimize(None if quantization in ("float32", "bfloat16") else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    (folder / "tokenizer.model").write_bytes(translator.tokenizer.model)
    search = json.dumps(search_options(translator), indent=1, ensure_ascii=False)
    (folder / "search.json").write_text(search + "\n", "utf-8")


def require_package() -> None:
    """Raises an `InputError` when ctranslate2 is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise InputError(
            "--format ctranslate2 needs the package ctranslate2: "
            "pip install 'tf_transformer[ctranslate2]'"
        )


def require_expressible(model: ModelConfig, decode: DecodeConfig) -> None:
    """Raises an `InputError` that names what CTranslate2 has no place for, if anything."""
    key_dim, value_dim = model.decoder.key_dim, model.decoder.value_dim
    if key_dim != value_dim:
        raise InputError(
            "CTranslate2 has one size for a head's keys and values, but this model has "
            f"model.key_dim {key_dim} and model.value_dim {value_dim}. "
            "Use --format saved_model, or train with equal sizes."
        )
    for name, nothing in NOT_EXPRESSIBLE.items():
        if getattr(decode, name) != nothing:
            raise InputError(
                f"CTranslate2 has nothing that does what decode.{name}={getattr(decode, name)} "
                f"does. Use --format saved_model, or give --{name} {str(nothing).lower()} and set "
                "CTranslate2's own options where you call it."
            )


def positions(translator: "Translator") -> int:
    """How many positions a side has: for the longest source, and for its longest translation."""
    source = translator.max_source_length
    return max(source, int(max_target_lengths(source, translator.config, translator.model.config)))


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """The pieces in the order of their ids."""
    return [tokenizer.piece(token) for token in range(tokenizer.vocabulary_size)]


def search_options(translator: "Translator") -> dict[str, Any]:
    """The content of search.json."""
    options = {name: getattr(translator.config, name) for name in SEARCH_OPTIONS}
    lengths = {"max_source_length": translator.max_source_length}
    return options | lengths | {"positions": positions(translator)}


def specification(model: Transformer, count: int, dtype: np.dtype) -> "TransformerSpec":
    """A model's weights as CTranslate2 names them.

    Args:
        model: the built Transformer.
        count: positions a side.
        dtype: of the weights.
    """
    from ctranslate2 import specs

    config = model.config
    (encoder, encoder_options), (decoder, decoder_options) = (
        (
            (stack.num_layers, stack.num_heads),
            {"pre_norm": config.norm_first, "head_dim": stack.key_dim},
        )
        for stack in (config.encoder, config.decoder)
    )
    spec = specs.TransformerSpec(
        specs.TransformerEncoderSpec(*encoder, **encoder_options),
        specs.TransformerDecoderSpec(*decoder, **decoder_options),
    )
    fill = Filling(dtype)
    fill.encoder(spec.encoder, model, count)
    fill.decoder(spec.decoder, model, count)
    return spec


class Filling:
    """Puts weights into a specification; each method fills the part it is named after.

    Args:
        dtype: of the weights.
    """

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def array(self, weight: Any) -> np.ndarray:
        """A weight as CTranslate2 takes it: an array in the dtype, without gaps."""
        return np.ascontiguousarray(keras.ops.convert_to_numpy(weight).astype(self.dtype))

    def encoder(self, spec: Any, model: Transformer, count: int) -> None:
        """The source side, its embedding and positions included."""
        spec.embeddings[0].weight = self.array(model.source_embedding.embeddings)
        encodings = model.source_position.encodings(count, model.config.d_model)
        spec.position_encodings.encodings = self.array(encodings)
        for part, layer in zip(spec.layer, model.encoder.layers, strict=True):
            self.attention(part.self_attention, layer.self_attention, layer.attention_residual.norm)
            self.feed_forward(part.ffn, layer)
        if model.encoder.final_norm is not None:
            self.norm(spec.layer_norm, model.encoder.final_norm)

    def decoder(self, spec: Any, model: Transformer, count: int) -> None:
        """The target side, from its embedding to the logits."""
        spec.embeddings.weight = self.array(model.target_embedding.embeddings)
        encodings = model.target_position.encodings(count, model.config.d_model)
        spec.position_encodings.encodings = self.array(encodings)
        for part, layer in zip(spec.layer, model.decoder.layers, strict=True):
            self.attention(part.self_attention, layer.self_attention, layer.attention_residual.norm)
            self.attention(part.attention, layer.cross_attention, layer.cross_residual.norm)
            self.feed_forward(part.ffn, layer)
        if model.decoder.final_norm is not None:  # before the logits, where norms come first
            self.norm(spec.layer_norm, model.decoder.final_norm)
        spec.projection.weight = self.array(model.output_embedding.embeddings)

    def attention(self, spec: Any, attention: MultiHeadAttention, norm: LayerNorm) -> None:
        """Projections of the same input lie side by side in CTranslate2 as they do here."""
        inputs: Sequence[keras.layers.Dense]
        if attention.is_self_attention:
            inputs = [attention.projection]
        else:
            inputs = [attention.query_projection, attention.key_value_projection]
        projections = [*inputs, attention.output_projection]
        for linear, dense in zip(spec.linear, projections, strict=True):
            self.linear(linear, dense)
        self.norm(spec.layer_norm, norm)

    def feed_forward(self, spec: Any, layer: Any) -> None:
        """The feed-forward network of an encoder or decoder layer."""
        self.linear(spec.linear_0, layer.feed_forward.hidden)
        self.linear(spec.linear_1, layer.feed_forward.output_projection)
        self.norm(spec.layer_norm, layer.feed_forward_residual.norm)

    def linear(self, spec: Any, dense: keras.layers.Dense) -> None:
        """CTranslate2's matrices are (outputs, inputs)."""
        spec.weight = self.array(keras.ops.transpose(dense.kernel))
        if dense.use_bias:
            spec.bias = self.array(dense.bias)

    def norm(self, spec: Any, norm: LayerNorm) -> None:
        """γ and β; ε is one for the whole model."""
        spec.gamma, spec.beta = self.array(norm.gamma), self.array(norm.beta)
