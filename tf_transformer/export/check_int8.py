"""Compares a predictor in int8 with the float32 predictor from which it was made.

Rounding to int8 changes most models little. But an activation that is far larger than the others
leaves too few steps for the others, and then a search may repeat words without end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.inference.text_predictor import TextPredictor

# The models in pretrained/ change by at most 0.004 nats, and 97 % or more of their best predictions
# are among those of float32.
MAX_CHANGE = 0.15
MIN_KEPT = 0.7
MAX_GROWTH = 1.1


class Agreement(NamedTuple):
    """How near the predictions of two predictors are."""

    change: float  # mean change of a token's log-probability in given predictions, nats
    kept: float  # share of best predictions that are among all predictions of the other
    growth: float  # length of all best predictions, divided by that of the other

    def __str__(self) -> str:
        return (
            f"int8 changes log-probabilities by {self.change:.3f} per token; {self.kept:.0%} of "
            f"its best predictions are among those of float32; they are {self.growth:.2f} times as "
            "long"
        )


def check(full: TextPredictor, small: TextPredictor, texts: Sequence[str]) -> Agreement:
    """Compares scores of given predictions, best predictions and their lengths.

    Args:
        full: the predictor in float32.
        small: the predictor in int8.
        texts: the check sentences.

    Raises:
        RuntimeError: when int8 changes more than rounding explains.
    """
    agreement = compare(full, small, texts)
    agrees = (
        agreement.change <= MAX_CHANGE
        and agreement.kept >= MIN_KEPT
        and agreement.growth <= MAX_GROWTH
    )
    if not agrees:  # also with NaN
        raise RuntimeError(
            f"this model does not keep its quality in int8: {agreement}. Export it with --dtype "
            "float32 or bfloat16."
        )
    return agreement


def compare(full: TextPredictor, small: TextPredictor, texts: Sequence[str]) -> Agreement:
    """The agreement of two predictors with the same vocabulary."""
    in_float32 = [[prediction.text for prediction in row] for row in full.n_best(texts)]
    in_int8 = [prediction.text for prediction in small(texts)]
    targets = [row[0] for row in in_float32]
    tokens = sum(len(full.codec["target"].encode(text)) for text in targets)
    pairs = zip(full.score(texts, targets), small.score(texts, targets), strict=True)
    changes = [abs(a.log_probability - b.log_probability) for a, b in pairs]
    kept = [text in row for text, row in zip(in_int8, in_float32, strict=True)]
    before, after = (sum(map(len, column)) for column in (targets, in_int8))
    return Agreement(
        sum(changes) / max(1, tokens), float(np.mean(kept)), (1 + after) / (1 + before)
    )
