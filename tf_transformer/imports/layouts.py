"""The weights of a `Transformer` under the names of other programs, a table per format.

Imports and exports read the tables in opposite directions.
"""

import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

import keras
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer

Arrays = Mapping[str, np.ndarray]
"""Weights by the names of another program, float32."""
_NAME = re.compile(r"(encoder|decoder)/(?:layer_(\d+)/)?(.+)/(\w+)")


class Layout(NamedTuple):
    """The names of the arrays of encoder, decoder and bias of the logits in another program.

    In all names, {side} is encoder or decoder, {number} the number of the layer, and {kind} the
    value of `kinds`. `parts` has the parts of a layer, such as self_attention/output, and the rest
    of the names of their arrays, with a space between two arrays. A key with a side before the
    part, or with a kind after it, comes first; "" is a weight that the format does not have.
    """

    layer: str  # the beginning of the names of a layer
    parts: Mapping[str, str]
    last_norm: str  # the normalization after the last layer of a pre-norm model
    kinds: Mapping[str, str]  # the words for kernel, bias, gamma and beta
    bias: str = ""  # the bias of the logits; "": the program has none
    first: int = 0  # the number of the first layer
    is_transposed: bool = True  # matrices (outputs, inputs), as in PyTorch; else as Keras' are

    def names(self, name: str) -> tuple[str, ...]:
        """The names of the arrays whose columns a weight of a layer holds side by side; else ()."""
        if (parsed := _NAME.fullmatch(name)) is None:
            return ()
        side, number, part, kind = parsed.groups()
        words = {"side": side, "number": int(number or 0) + self.first, "kind": self.kinds[kind]}
        if number is None:
            return (self.last_norm.format(**words),)
        keys = (f"{part}/{kind}", f"{side}/{part}", part)
        rest = self.parts[next((key for key in keys if key in self.parts), part)]
        return tuple((self.layer + name).format(**words) for name in rest.split())

    def fill(self, model: Transformer, arrays: Arrays, path: pathlib.Path) -> set[str]:
        """Assigns arrays by name to the weights of encoder and decoder, and returns these names.

        Other names may be among the arrays of the file `path`. An array that is missing or has
        another shape is an `InputError`.
        """
        used: set[str] = set()
        for name, weight in by_name(model).items():
            if not (names := self.names(name)):
                continue
            shape = (*weight.shape[:-1], weight.shape[-1] // len(names))
            shape = shape[::-1] if self.is_transposed else shape
            parts = [array_of(arrays, part, shape, path) for part in names]
            parts = [part.T for part in parts] if self.is_transposed else parts
            weight.assign(np.concatenate(parts, axis=-1))
            used.update(names)
        return used

    def arrays(self, model: Transformer, with_biases: bool = False) -> dict[str, np.ndarray]:
        """The weights of encoder, decoder and bias of the logits as float32 arrays by name.

        With `with_biases`, a product without a bias gets a bias of zeros.
        """
        weights = by_name(model)
        arrays: dict[str, np.ndarray] = {}
        for name, weight in weights.items():
            value = keras.ops.convert_to_numpy(weight).astype(np.float32)
            arrays |= self._divided(name, value)
            stem, _, kind = name.rpartition("/")
            if with_biases and kind == "kernel" and f"{stem}/bias" not in weights:
                arrays |= self._divided(f"{stem}/bias", np.zeros(value.shape[-1], np.float32))
        bias = getattr(model.output_embedding, "bias", None)
        if bias is not None or with_biases:
            bias = np.zeros(model.vocabulary_size) if bias is None else bias
            arrays[self.bias] = keras.ops.convert_to_numpy(bias).astype(np.float32)
        return arrays

    def _divided(self, name: str, value: np.ndarray) -> dict[str, np.ndarray]:
        if not (names := self.names(name)):
            return {}
        parts = np.split(value, len(names), axis=-1)
        parts = [part.T for part in parts] if self.is_transposed else parts
        return dict(zip(names, map(np.ascontiguousarray, parts), strict=True))


def array_of(arrays: Arrays, name: str, shape: tuple[int, ...], path: pathlib.Path) -> np.ndarray:
    """The array with a name, which must have the shape; -1 stands for any size."""
    if name not in arrays:
        raise InputError(f"{path}: the weights have no {name}, which the configuration needs.")
    actual = arrays[name].shape
    if len(actual) != len(shape) or any(
        a not in (-1, b) for a, b in zip(shape, actual, strict=True)
    ):
        raise InputError(
            f"{path}: {name} has the shape {actual}, and the configuration needs {shape}."
        )
    return arrays[name]


# `MarianMTModel` of Transformers. Its embeddings are not in the table.
TRANSFORMERS = Layout(
    layer="model.{side}.layers.{number}.",
    parts={
        "self_attention/query_key_value": "self_attn.q_proj.{kind} self_attn.k_proj.{kind} "
        "self_attn.v_proj.{kind}",
        "self_attention/output": "self_attn.out_proj.{kind}",
        "attention_residual/norm": "self_attn_layer_norm.{kind}",
        "cross_attention/query": "encoder_attn.q_proj.{kind}",
        "cross_attention/key_value": "encoder_attn.k_proj.{kind} encoder_attn.v_proj.{kind}",
        "cross_attention/output": "encoder_attn.out_proj.{kind}",
        "cross_residual/norm": "encoder_attn_layer_norm.{kind}",
        "feed_forward/hidden": "fc1.{kind}",
        "feed_forward/output": "fc2.{kind}",
        "feed_forward_residual/norm": "final_layer_norm.{kind}",
    },
    last_norm="model.{side}.layer_norm.{kind}",
    kinds={"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"},
    bias="final_logits_bias",  # (1, V)
)
# fairseq, whose modules gave Transformers these names.
FAIRSEQ = TRANSFORMERS._replace(
    layer="{side}.layers.{number}.", last_norm="{side}.layer_norm.{kind}", bias=""
)
_MARIAN = {
    "self_attention/query_key_value": "self_{kind}q self_{kind}k self_{kind}v",
    "self_attention/output": "self_{kind}o",
    "self_attention/value_forget": "rnn_{kind} rnn_{kind}f",
    "self_attention/value_forget/bias": "",
    "self_attention/forget_bias": "rnn_{kind}",
    "attention_residual/norm": "self_Wo_ln_{kind}",
    "cross_attention/query": "context_{kind}q",
    "cross_attention/key_value": "context_{kind}k context_{kind}v",
    "cross_attention/output": "context_{kind}o",
    "cross_residual/norm": "context_Wo_ln_{kind}",
    "feed_forward/hidden": "ffn_{kind}1",
    "feed_forward/output": "ffn_{kind}2",
    "feed_forward_residual/norm": "ffn_ffn_ln_{kind}",
}


def marian(norm_first: bool, has_ssru: bool) -> Layout:
    """Marian's own files: matrices (inputs, outputs), vectors (1, outputs).

    Norms before a sub-layer have other names than norms after it, and those of an SSRU, too.
    """
    parts = dict(_MARIAN)
    if has_ssru:
        norm = "rnn_ln_{kind}" if norm_first else "rnn_ffn_ln_{kind}"
        parts["decoder/attention_residual/norm"] = norm
    if norm_first:
        parts |= {part: f"{name}_pre" for part, name in parts.items() if part.endswith("/norm")}
    return Layout(
        layer="{side}_l{number}_",
        parts=parts,
        last_norm="{side}_top_ln_{kind}",
        kinds={
            **{"kernel": "W", "bias": "b", "gamma": "scale", "beta": "bias"},
            "forget_bias": "bf",
        },
        bias="decoder_ff_logit_out_b",
        first=1,
        is_transposed=False,
    )


_CTRANSLATE2 = {
    "self_attention/query_key_value": "self_attention/linear_0/{kind}",
    "self_attention/output": "self_attention/linear_1/{kind}",
    "attention_residual/norm": "self_attention/layer_norm/{kind}",
    "cross_attention/query": "attention/linear_0/{kind}",
    "cross_attention/key_value": "attention/linear_1/{kind}",
    "cross_attention/output": "attention/linear_2/{kind}",
    "cross_residual/norm": "attention/layer_norm/{kind}",
    "feed_forward/hidden": "ffn/linear_0/{kind}",
    "feed_forward/output": "ffn/linear_1/{kind}",
    "feed_forward_residual/norm": "ffn/layer_norm/{kind}",
}


def ctranslate2(is_gated: bool) -> Layout:
    """CTranslate2; gated hidden layers, as those of SwiGLU, have two matrices."""
    gated = {"feed_forward/hidden": "ffn/linear_0/{kind} ffn/linear_0_noact/{kind}"}
    return Layout(
        layer="{side}/layer_{number}/",
        parts=_CTRANSLATE2 | (gated if is_gated else {}),
        last_norm="{side}/layer_norm/{kind}",
        kinds={"kernel": "weight", "bias": "bias", "gamma": "gamma", "beta": "beta"},
        bias="decoder/projection/bias",
    )


_OPENNMT = {
    "self_attention/query_key_value": "self_attention/layer/linear_queries/{kind} "
    "self_attention/layer/linear_keys/{kind} self_attention/layer/linear_values/{kind}",
    "self_attention/output": "self_attention/layer/linear_output/{kind}",
    "attention_residual/norm": "self_attention/NORM/{kind}",
    "cross_attention/query": "attention/0/layer/linear_queries/{kind}",
    "cross_attention/key_value": "attention/0/layer/linear_keys/{kind} "
    "attention/0/layer/linear_values/{kind}",
    "cross_attention/output": "attention/0/layer/linear_output/{kind}",
    "cross_residual/norm": "attention/0/NORM/{kind}",
    "feed_forward/hidden": "ffn/layer/inner/{kind}",
    "feed_forward/output": "ffn/layer/outer/{kind}",
    "feed_forward_residual/norm": "ffn/NORM/{kind}",
}


def opennmt_tf(norm_first: bool) -> Layout:
    """OpenNMT-tf, whose pre-norm and post-norm models name norms apart."""
    norm = "input_layer_norm" if norm_first else "output_layer_norm"
    return Layout(
        layer="model/{side}/layers/{number}/",
        parts={part: names.replace("NORM", norm) for part, names in _OPENNMT.items()},
        last_norm="model/{side}/layer_norm/{kind}",
        kinds={"kernel": "kernel", "bias": "bias", "gamma": "gamma", "beta": "beta"},
        bias="model/decoder/output_layer/bias",
        is_transposed=False,
    )
