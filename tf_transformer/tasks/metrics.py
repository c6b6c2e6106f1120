"""Metrics: what a task's predictions are scored by, and which weights are best.

A metric is one object in one file; `tasks/comet.py` is an example. A name makes it known to
`train.metric` and to `evaluate.py --metric`:

    metrics.register("length_ratio", "my_metrics:LENGTH_RATIO")
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tf_transformer.errors import InputError
from tf_transformer.registry import Registry

References = Sequence[Sequence[str]]
"""lists of references; each list has one for every prediction"""


class Metric(Protocol):
    """Scores predictions.

    Attributes:
        name: of the score by which the best weights can be chosen; `score` gives it.
        lower_is_better: whether the best weights have the lowest score.
    """

    @property
    def name(self) -> str: ...

    @property
    def lower_is_better(self) -> bool: ...

    def score(
        self, inputs: Sequence[str], predictions: Sequence[str], references: References
    ) -> dict[str, Any]:
        """The score and what else belongs to it, by name, as JSON can hold them.

        Args:
            inputs: a text for each prediction; none where given outputs are scored without them.
            predictions: texts.
            references: lists of references; each list has one for every prediction. Most tests
                have one list.

        Raises:
            InputError: when there is nothing to score, the numbers of texts differ, or the metric
                needs inputs and has none.
        """


@dataclass(frozen=True)
class OfModel:
    """A metric that only the test of a model gives, because it needs probabilities.

    Attributes:
        name: of the score.
        lower_is_better: whether the best weights have the lowest score.
    """

    name: str
    lower_is_better: bool = False

    def score(
        self, inputs: Sequence[str], predictions: Sequence[str], references: References
    ) -> dict[str, Any]:
        """Raises an `InputError`: texts have no probabilities."""
        raise InputError(
            f"{self.name} needs the probabilities of a model, which given outputs do not have. "
            "Give --run_dir and --reference, without --hypotheses."
        )


LOSS = OfModel("loss", lower_is_better=True)
OF_VALIDATION = (LOSS, OfModel("perplexity", lower_is_better=True))
"""metrics that every validation gives, without predictions"""

METRICS = Registry("metric", {"comet": "tf_transformer.tasks.comet:COMET"})
register = METRICS.register


def find(name: str, own: Iterable[Metric]) -> Metric:
    """The metric of this name.

    Args:
        name: of one of a task's metrics, a registered one, or "module:attribute".
        own: the metrics that the task has.

    Raises:
        InputError: for a metric that does not exist.

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
    metrics: Iterable[Metric],
    inputs: Sequence[str],
    predictions: Sequence[str],
    references: References,
) -> dict[str, Any]:
    """The scores of several metrics; one that came with an earlier one is not computed again.

    Raises:
        InputError: as `Metric.score`.
    """
    scores: dict[str, Any] = {}
    for metric in metrics:
        if metric.name not in scores:
            scores |= metric.score(inputs, predictions, references)
    return scores


def gain(metric: Metric, score: float) -> float:
    """A number that is higher where the score is better, and whose gain is the score."""
    return -score if metric.lower_is_better else score
