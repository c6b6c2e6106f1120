"""The names of Marian's weights in Transformers, and the place of each in a `Transformer`."""

from collections.abc import Iterator
from typing import Any

from tf_transformer.imports.place import Place
from tf_transformer.layers import DecoderLayer, EncoderLayer
from tf_transformer.models.transformer import Transformer

EMBEDDINGS = (
    *("model.shared.weight", "lm_head.weight"),
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
)
BIAS = "final_logits_bias"
# Sinusoids, which are computed.
COMPUTED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def places(model: Transformer) -> Iterator[Place]:
    """The places of all weights but the embeddings and the bias of the logits."""
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for i, layer in enumerate(stack.layers):
            yield from _of_layer(layer, f"model.{side}.layers.{i}")
        if stack.final_norm is not None:
            yield from _norm(stack.final_norm, f"model.{side}.layer_norm")


def _of_layer(layer: EncoderLayer | DecoderLayer, name: str) -> Iterator[Place]:
    attention = layer.self_attention
    yield from _dense(attention.projection, *_projections(f"{name}.self_attn", "qkv"))
    yield from _dense(attention.output_projection, f"{name}.self_attn.out_proj")
    yield from _norm(layer.attention_residual.norm, f"{name}.self_attn_layer_norm")
    if layer.has_cross_attention:
        attention, of = layer.cross_attention, f"{name}.encoder_attn"
        yield from _dense(attention.query_projection, *_projections(of, "q"))
        yield from _dense(attention.key_value_projection, *_projections(of, "kv"))
        yield from _dense(attention.output_projection, f"{of}.out_proj")
        yield from _norm(layer.cross_residual.norm, f"{name}.encoder_attn_layer_norm")
    yield from _dense(layer.feed_forward.hidden, f"{name}.fc1")
    yield from _dense(layer.feed_forward.output_projection, f"{name}.fc2")
    yield from _norm(layer.feed_forward_residual.norm, f"{name}.final_layer_norm")


def _projections(attention: str, letters: str) -> list[str]:
    return [f"{attention}.{letter}_proj" for letter in letters]


def _dense(layer: Any, *names: str) -> Iterator[Place]:
    yield Place(layer.kernel, tuple(f"{name}.weight" for name in names))
    if layer.bias is not None:
        yield Place(layer.bias, tuple(f"{name}.bias" for name in names))


def _norm(layer: Any, name: str) -> Iterator[Place]:
    yield Place(layer.gamma, (f"{name}.weight",))
    yield Place(layer.beta, (f"{name}.bias",))
