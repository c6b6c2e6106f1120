"""The order of weights in the checkpoints of versions before 0.3, which number their weights."""

import re
from collections.abc import Iterable

# The parts of all models in this order; the first pattern that matches a name counts.
_PARTS = (
    *("encoder/embedding/", "encoder/position/", r"encoder_?\d*/", "source_position/"),
    *("position/", "decoder/", "target_position/", "hidden/", "norm/", "head/"),
    *("target_embedding/", "source_embedding/", "output_embedding/", "embedding/"),
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
    """The names of all weights of a model in the order of their numbers.

    With `model.position` learned, a Transformer had these tables last. Other tables belonged to the
    stacks.
    """

    def place(name: str) -> tuple:
        part = next(i for i, pattern in enumerate(_PARTS) if re.match(pattern, name))
        is_last = learned_positions and re.match(r"(source|target)_position/", name) is not None
        return is_last, part, [_place(word) for word in name.split("/")]

    return sorted(names, key=place)


def _place(word: str) -> tuple[int, int]:
    stem, number = re.fullmatch(r"(.*?)(?:_(\d+))?", word).groups()  # type: ignore[union-attr]
    return _WORDS.index(stem) if stem in _WORDS else -1, int(number or 0)
