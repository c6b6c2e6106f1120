"""Metrics, which score the predictions of a task and choose the best weights.

A metric is one object in one file; `tasks/comet.py` is an example. A registered metric has a name
for `train.metric` and `evaluate.py --metric`:

    metrics.register("length_ratio", "my_metrics:LENGTH_RATIO")
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tf_transformer.errors import InputError
from tf_transformer.registry import Registry

Strings = Sequence[str]
Scores = dict[str, Any]  # by name, in JSON's types
References = Sequence[Strings]
"""Lists of references; each list has one reference per prediction."""


class Metric(Protocol):
    """The interface of a metric."""

    @property
    def name(self) -> str:
        """The score that can choose the best weights, a key in the result of `score`."""

    @property
    def lower_is_better(self) -> bool:
        """Whether the best weights have the lowest score."""

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        """Scores predictions; an `InputError` if there are none, or if texts are missing.

        Args:
            inputs: the input of each prediction; empty for given outputs without inputs.
            predictions: the predicted texts.
            references: lists of references, one reference per prediction in each. Most test sets
                have one list.

        Returns:
            the score by its name, with further facts by name, in JSON's types.
        """


@dataclass(frozen=True)
class OfModel:
    """A metric that needs the probabilities of a model; given outputs have no such score."""

    name: str
    lower_is_better: bool = False

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        raise InputError(
            f"{self.name} needs the probabilities of a model, which given outputs do not have. "
            "Give --run_dir and --reference, without --hypotheses."
        )


LOSS = OfModel("loss", lower_is_better=True)
OF_VALIDATION = (LOSS, OfModel("perplexity", lower_is_better=True))
"""The metrics that each validation computes, without predictions."""

METRICS = Registry("metric", {"comet": "tf_transformer.tasks.comet:COMET"})
register = METRICS.register


def find(name: str, own: Iterable[Metric]) -> Metric:
    """The metric with a name: of the task, registered, or "module:attribute".

    Raises:
        InputError: for an unknown metric.

    Example:
        >>> find("loss", OF_VALIDATION).lower_is_better
        True
    """
    known = {metric.name: metric for metric in own}
    if name in known:
        return known[name]
    if name not in METRICS and ":" not in name:
        names = ", ".join([*known, *sorted(METRICS)])
        raise InputError(f"unknown metric {name!r}; expected {names}, or module:attribute.")
    return METRICS.get(name)


def score_all(
    metrics: Iterable[Metric], inputs: Strings, predictions: Strings, references: References
) -> Scores:
    """The scores of several metrics. A score in the result of an earlier metric is not repeated."""
    scores: Scores = {}
    for metric in metrics:
        if metric.name not in scores:
            scores |= metric.score(inputs, predictions, references)
    return scores


def gain(metric: Metric, score: float) -> float:
    """A number that is higher for a better score; the gain of a gain is the score."""
    return -score if metric.lower_is_better else score
