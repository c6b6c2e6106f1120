"""The configuration of a run: frozen dataclasses that check their values.

A run's `config.yaml` is a complete `Config`; no option changes by itself. `--help` prints the
descriptions of the attributes.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tf_transformer.config.data import DataConfig
from tf_transformer.config.decode import DecodeConfig
from tf_transformer.config.model import ModelConfig
from tf_transformer.config.option import Rules, check, options_in
from tf_transformer.config.task import TaskOptions
from tf_transformer.config.train import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.registry import options_of


@dataclass(frozen=True)
class Config:
    """The configuration of a run, stored as `config.yaml` in its folder.

    Attributes:
        model: sizes and variants of the model.
        data: the examples, and how they become batches.
        train: how the model is trained.
        decode: how the model makes predictions.
        task: the task with its own options. The name of a task gives its defaults.

    Example:
        >>> Config(task="parsing").task.linearization
        'lexical_in_order'
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    task: TaskOptions = "translation"  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.task, str):
            object.__setattr__(self, "task", options_of(self.task)(name=self.task))
        check(self, "")
        if not self.task.name:
            raise InputError("task.name must be the name of a task, or module:attribute, got ''.")
        if self.model.position == "learned" and self.data.max_length > self.model.max_length:
            raise InputError(
                f"data.max_length ({self.data.max_length}) must be at most model.max_length "
                f"({self.model.max_length}), the number of learned positions."
            )
        if self.data.vocabularies == "separate" and self.model.tie_embeddings == "all":
            raise InputError(
                "model.tie_embeddings all needs one vocabulary for source and target, but "
                "data.vocabularies is separate. Give --model.tie_embeddings target (or none), or "
                "--data.vocabularies shared."
            )
        if self.train.guided_alignment_weight:
            self._require_alignments()

    def _require_alignments(self) -> None:
        """Raises an `InputError` for options with which no head can learn to align words."""
        model, decode = self.model, self.decode
        layers, heads = model.decoder.num_layers, model.decoder.num_heads
        if model.architecture != "transformer":
            layers = heads = 1
        problem = ""
        if not any(corpus.alignments for corpus in self.data.corpora):
            problem = "needs data.train_alignments, or alignments of a corpus in data.corpora"
        elif self.data.bpe_dropout:
            problem = "needs fixed pieces of words: set data.bpe_dropout to 0"
        elif self.data.prepared:
            problem = "reads the text itself: leave out data.prepared"
        elif model.remat:
            problem = "needs the gradient of the attention: set model.remat to false"
        elif decode.alignment_layer not in range(-layers, layers):
            problem = f"needs a decode.alignment_layer below {layers}, got {decode.alignment_layer}"
        elif decode.alignment_head not in range(-1, heads):
            problem = f"needs a decode.alignment_head below {heads}, got {decode.alignment_head}"
        if problem:
            raise InputError(f"train.guided_alignment_weight {problem}.")

    def with_options(self, options: Mapping[str, Any]) -> "Config":
        """This configuration with other values of options, by names like model.d_model."""
        return _with_values(self, options)

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of options, by names like model.d_model."""
        return {name: operator.attrgetter(name)(self) for name in names}

    def differences(self, other: "Config") -> dict[str, tuple[object, object]]:
        """The options that differ, as {"model.d_model": (value here, value in `other`)}."""
        ours, theirs = (
            {option.name: option.value for option in options_in(config)} for config in (self, other)
        )
        return {
            name: (value, theirs[name])
            for name, value in ours.items()
            if name in theirs and value != theirs[name]
        }

    @property
    def rules(self) -> dict[str, Rules]:
        """What the field of each option says, by its name."""
        return {option.name: option.rules for option in options_in(self)}


def _with_values(config: Any, options: Mapping[str, Any]) -> Any:
    """A copy of a dataclass with other values of its options and of options of its groups."""
    groups: dict[str, dict[str, Any]] = {}
    for option, value in options.items():
        name, _, name_in_group = option.partition(".")
        groups.setdefault(name, {})[name_in_group] = value
    changes = {
        name: own[""] if "" in own else _with_values(getattr(config, name), own)
        for name, own in groups.items()
    }
    return replace(config, **changes)
