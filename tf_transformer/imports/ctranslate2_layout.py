"""The names of CTranslate2's variables, and the place of each in a `Transformer`.

CTranslate2 joins the projections of one input in one matrix, as this project does.
"""

from collections.abc import Iterator
from typing import Any

from tf_transformer.imports.place import Place
from tf_transformer.layers import DecoderLayer, EncoderLayer, GatedFeedForward
from tf_transformer.models.transformer import Transformer


def places(model: Transformer) -> Iterator[Place]:
    """The places of all weights but the embeddings, the bias of the logits, and positions."""
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for i, layer in enumerate(stack.layers):
            yield from _of_layer(layer, f"{side}/layer_{i}")
        if stack.final_norm is not None:
            yield from _norm(stack.final_norm, f"{side}/layer_norm")


def _of_layer(layer: EncoderLayer | DecoderLayer, name: str) -> Iterator[Place]:
    attention, of = layer.self_attention, f"{name}/self_attention"
    yield from _dense(attention.projection, f"{of}/linear_0")
    yield from _dense(attention.output_projection, f"{of}/linear_1")
    yield from _norm(layer.attention_residual.norm, f"{of}/layer_norm")
    if layer.has_cross_attention:
        attention, of = layer.cross_attention, f"{name}/attention"
        yield from _dense(attention.query_projection, f"{of}/linear_0")
        yield from _dense(attention.key_value_projection, f"{of}/linear_1")
        yield from _dense(attention.output_projection, f"{of}/linear_2")
        yield from _norm(layer.cross_residual.norm, f"{of}/layer_norm")
    hidden = [f"{name}/ffn/linear_0"]
    if isinstance(layer.feed_forward, GatedFeedForward):
        hidden.append(f"{name}/ffn/linear_0_noact")
    yield from _dense(layer.feed_forward.hidden, *hidden)
    yield from _dense(layer.feed_forward.output_projection, f"{name}/ffn/linear_1")
    yield from _norm(layer.feed_forward_residual.norm, f"{name}/ffn/layer_norm")


def _dense(layer: Any, *names: str) -> Iterator[Place]:
    yield Place(layer.kernel, tuple(f"{name}/weight" for name in names))
    if layer.bias is not None:
        yield Place(layer.bias, tuple(f"{name}/bias" for name in names))


def _norm(layer: Any, name: str) -> Iterator[Place]:
    yield Place(layer.gamma, (f"{name}/gamma",))
    if hasattr(layer, "beta"):
        yield Place(layer.beta, (f"{name}/beta",))
