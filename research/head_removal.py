"""Heads of attention one by one: models without some of them.

Voita et al. (2019) and Michel et al. (2019) found that few heads do most of the work.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keras import ops

from tf_transformer.layers.attention import Attention
from tf_transformer.models.transformer import Transformer


class Head(NamedTuple):
    """A head of a Transformer; layers and heads are counted from 0."""

    attention: str  # encoder (self-attention), decoder (self-attention) or cross
    layer: int
    number: int


def attentions(model: Transformer) -> dict[tuple[str, int], Attention]:
    """The attention layers of a model, by kind and number of the layer."""
    return {
        **{("encoder", i): layer.self_attention for i, layer in enumerate(model.encoder.layers)},
        **{("decoder", i): layer.self_attention for i, layer in enumerate(model.decoder.layers)},
        **{("cross", i): layer.cross_attention for i, layer in enumerate(model.decoder.layers)},
    }


def all_heads(model: Transformer) -> list[Head]:
    """All heads of a model.

    Example:
        >>> model = Transformer(vocabulary_size=11)
        >>> len(all_heads(model))  # 4 layers of 4 heads in the encoder, 4 of 2 · 4 in the decoder
        48
    """
    return [
        Head(*place, number)
        for place, attention in attentions(model).items()
        for number in range(attention.config.num_heads)
    ]


@contextlib.contextmanager
def without(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Removes heads from a built model until the context ends.

    The output of a head is multiplied by its own rows of W^O, so a head whose rows are 0 adds
    nothing. Searches that were traced before use the changed weights, too.
    """
    layers = attentions(model)
    kernels = {place: layers[place].output_projection.kernel for place in layers}
    before = {place: ops.convert_to_numpy(kernel) for place, kernel in kernels.items()}
    after = {place: value.copy() for place, value in before.items()}
    for kind, layer, number in heads:
        size = layers[kind, layer].config.value_dim
        after[kind, layer][number * size : (number + 1) * size] = 0
    try:
        for place, value in after.items():
            kernels[place].assign(value)
        yield
    finally:
        for place, value in before.items():
            kernels[place].assign(value)
