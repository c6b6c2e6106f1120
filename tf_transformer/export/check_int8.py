"""Compares a predictor in int8 with the float32 predictor from which it was made.

Rounding to int8 changes most models little. But an activation that is far larger than the others
leaves too few steps for the others, and then a search may repeat words without end.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tf_transformer.inference.predictor import SignatureCase
from tf_transformer.inference.text_predictor import TextPredictor

Cases = Mapping[str, SignatureCase]

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


def check(in_float32: Cases, in_int8: Cases, small: TextPredictor) -> Agreement:
    """Compares scores of given predictions, best predictions and their lengths.

    Args:
        in_float32: what `signatures` of the predictor in float32 returns for the check sentences.
        in_int8: the same of the predictor in int8.
        small: the predictor in int8.

    Raises:
        RuntimeError: when int8 changes more than rounding explains.
    """
    return require(compare(in_float32, in_int8, small))


def require(agreement: Agreement) -> Agreement:
    """Returns an agreement; a `RuntimeError` when int8 changes more than rounding explains."""
    agrees = (
        agreement.change <= MAX_CHANGE
        and agreement.kept >= MIN_KEPT
        and agreement.growth <= MAX_GROWTH
    )
    if not agrees:  # also with NaN
        raise RuntimeError(
            f"this model does not keep its quality in int8: {agreement}. Export it with "
            "float32 weights, or as a SavedModel with --dtype bfloat16."
        )
    return agreement


def compare(in_float32: Cases, in_int8: Cases, small: TextPredictor) -> Agreement:
    """The agreement of two predictors with the same vocabulary."""
    scored, best = in_float32["score"], in_int8["score"].inputs["target"]
    texts, targets = scored.inputs["source"], scored.inputs["target"]
    tokens = sum(len(small.codec["target"].encode(text)) for text in targets)
    pairs = zip(scored.outputs["log_probability"], small.score(texts, targets), strict=True)
    changes = [abs(before - after.log_probability) for before, after in pairs]
    among = in_float32["n_best"].outputs[f"{small.output}s"]
    kept = [text in row for text, row in zip(best, among, strict=True)]
    before, after = (sum(map(len, column)) for column in (targets, best))
    return Agreement(
        sum(changes) / max(1, tokens), float(np.mean(kept)), (1 + after) / (1 + before)
    )
