"""Several models as one: the mean of their probabilities of each next token."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.decoding.problem import CacheSchedule, StepOptions, StepResult, StepState
from tf_transformer.errors import InputError
from tf_transformer.models.reads_ids import ReadsIds


@keras.saving.register_keras_serializable(package="tf_transformer")
class Ensemble(ReadsIds):
    """p(token) = (p₁(token) + … + p_M(token)) / M, for M models with the same target vocabulary.

    A search takes the ensemble like one model. The models may differ in everything else.

    Args:
        members: the built models, such as `Transformer`.

    Call arguments:
        inputs: the inputs of each model, such as (source, target).
        training: whether dropout is on.

    Returns:
        log-probabilities of the next tokens, float32 tensor (B, T, V).

    Raises:
        ValueError: if there are no models, or if their target vocabularies have different sizes.

    Example:
        >>> from tf_transformer import Transformer
        >>> both = Ensemble([Transformer(vocabulary_size=11), Transformer(vocabulary_size=11)])
        >>> both((np.array([[5, 6, 2]]), np.array([[1, 8]]))).shape
        TensorShape([1, 2, 11])
    """

    def __init__(self, members: Sequence[keras.Model], **kwargs: Any):
        super().__init__(**kwargs)
        self.members = list(members)
        sizes = {member.vocabulary_size for member in self.members}
        if len(sizes) != 1:
            raise ValueError(
                "an ensemble needs models with equal target vocabularies, got the sizes "
                f"{sorted(sizes)}."
            )
        (self.vocabulary_size,) = sizes
        self.has_two_inputs = getattr(self.members[0], "has_two_inputs", False)

    def build(self, input_shape: Any = None) -> None:
        for member in self.members:
            if not member.built:
                member.build()

    def call(self, inputs: Any, training: bool | None = None) -> KerasTensor:
        return mean_of_probabilities(member(inputs, training=training) for member in self.members)

    def run(self, inputs: Any, training: bool | None = None) -> None:
        """Raises an `InputError`: the attention of several models is no single attention."""
        raise InputError(
            "an ensemble has no attention of its own: its models differ. Give one run for "
            "alignments and attention."
        )

    def max_target_length(self, source_length: int | KerasTensor) -> int | KerasTensor | None:
        """The smallest limit of the models, in target tokens; None: no limit."""
        limits = [member.max_target_length(source_length) for member in self.members]
        limits = [limit for limit in limits if limit is not None]
        if not limits:
            return None
        are_numbers = all(isinstance(limit, int) for limit in limits)
        return min(limits) if are_numbers else ops.amin(ops.stack(limits), axis=0)

    def step_function(self, source: KerasTensor, options: StepOptions) -> "EnsembleStep":
        """Makes the step function of a search for the targets of source ids (B, S)."""
        if options.coverage_penalty:
            raise InputError(
                "decode.coverage_penalty reads the attention of one model, and an ensemble has "
                "several. Set it to 0, or give one run."
            )
        return EnsembleStep([member.step_function(source, options) for member in self.members])

    def get_config(self) -> dict[str, Any]:
        members = [keras.saving.serialize_keras_object(member) for member in self.members]
        return super().get_config() | {"members": members}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Ensemble":
        """Makes an ensemble from the result of `get_config`; a new dtype is one of all models."""
        members = [dict(member) for member in config.pop("members")]
        for member in members:
            member["config"] = member["config"] | {"dtype": config["dtype"]}
        return cls([keras.saving.deserialize_keras_object(member) for member in members], **config)


def members_of(model: keras.Model) -> list[keras.Model]:
    """The models of an ensemble; another model alone."""
    return model.members if isinstance(model, Ensemble) else [model]


class EnsembleStep:
    """The step functions of several models as one. Parts of its state are tuples of theirs."""

    def __init__(self, steps: Sequence[Any]):
        self._steps = steps
        self.start = _joined(step.start for step in steps)
        schedules = [step.cache_schedule for step in steps]
        self.cache_schedule = None
        if all(schedules):
            self.cache_schedule = CacheSchedule(
                schedules[0].capacities,
                lambda state, capacity: _joined(
                    schedule.resize(own, capacity)
                    for schedule, own in zip(schedules, _parts(state), strict=True)
                ),
            )

    def __call__(self, ids: KerasTensor, state: StepState, index: KerasTensor) -> StepResult:
        results = [
            step(ids, own, index) for step, own in zip(self._steps, _parts(state), strict=True)
        ]
        log_p = mean_of_probabilities(logits for logits, _ in results)
        return log_p, _joined(after for _, after in results)


def mean_of_probabilities(logits: Iterable[KerasTensor]) -> KerasTensor:
    """log((p₁ + … + p_M) / M), where p is the softmax of the logits (..., V) of each model.

    The result is float32 (..., V). The logits of a single model are returned as they are.
    """
    of_models = [ops.cast(of_model, "float32") for of_model in logits]
    if len(of_models) == 1:
        return of_models[0]
    log_p = [ops.log_softmax(of_model, axis=-1) for of_model in of_models]
    return ops.logsumexp(ops.stack(log_p), axis=0) - math.log(len(log_p))


def _parts(state: StepState) -> list[StepState]:
    """The state of each model."""
    return [StepState(*own) for own in zip(*state, strict=True)]


def _joined(states: Iterable[StepState]) -> StepState:
    return StepState(*map(tuple, zip(*states, strict=True)))
