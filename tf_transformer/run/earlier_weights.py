"""The order of weights in the checkpoints of versions before 0.3, which number their weights."""

import re
from collections.abc import Iterable

# The parts of all models in this order; the first pattern that matches a name counts.
_PARTS = tuple(
    map(
        re.compile,
        (
            *(r"encoder/embedding/", r"encoder/position/", r"encoder_?\d*/", r"source_position/"),
            *(r"position/", r"decoder/", r"target_position/", r"hidden/", r"norm/", r"head/"),
            *(r"target_embedding/", r"source_embedding/", r"output_embedding/", r"embedding/"),
        ),
    )
)
# Words of names, in the order in which a layer had its parts.
_WORDS = (
    *("stack", "layer", "cell", "attention", "initial", "projection", "final_norm"),
    *("forward_gru", "backward_gru", "self_attention", "cross_attention", "feed_forward"),
    *("attention_residual", "cross_residual", "feed_forward_residual"),
    *("v", "query_key_value", "query", "key_value", "memory", "hidden", "output"),
    *("embeddings", "table", "kernel", "recurrent_kernel", "bias", "gamma", "beta"),
)


def earlier_order(names: Iterable[str], learned_positions: bool) -> list[str]:
    """Names of weights in the order of their numbers.

    Args:
        names: the names of all weights of a model.
        learned_positions: whether the model has `model.position` learned. A Transformer had these
            tables last; other tables belonged to the stacks.

    Example:
        >>> earlier_order(["decoder/layer_10/feed_forward/output/bias",
        ...     "decoder/layer_9/feed_forward/output/kernel",
        ...     "decoder/layer_10/feed_forward/output/kernel"], learned_positions=False)[1]
        'decoder/layer_10/feed_forward/output/kernel'
    """

    def place(name: str) -> tuple:
        part = next(i for i, pattern in enumerate(_PARTS) if pattern.match(name))
        is_last = learned_positions and re.match(r"(source|target)_position/", name) is not None
        return is_last, part, [_place(word) for word in name.split("/")]

    return sorted(names, key=place)


def _place(word: str) -> tuple[int, int]:
    stem, number = re.fullmatch(r"(.*?)(?:_(\d+))?", word).groups()  # type: ignore[union-attr]
    return _WORDS.index(stem) if stem in _WORDS else -1, int(number or 0)
