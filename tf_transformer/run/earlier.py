"""Reads what earlier versions wrote: options in YAML files, and weights with numbers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tf_transformer.config import TaskOptions
from tf_transformer.config.imported import with_record
from tf_transformer.errors import InputError
from tf_transformer.registry import options_of

# Options of one task. Earlier versions had them in groups for all tasks.
MOVED = {
    "data": ("linearization", "text_columns", "label_column", "label_separator", "labels"),
    "train": ("bleu_tokenize",),
    "decode": ("copy_without_letters", "grammar"),
}
# Options that a file has together only if a run of an earlier version stored it.
_STORED_DATA = {"corpora", "origin", "held_out", "bucket_width"}
_CORPORA, _EPOCHS = ("corpora", "valid_corpora"), ("from_epoch", "until_epoch")
# Options of training that are constants now, with their values.
CONSTANTS: dict[str, dict[str, Any]] = {
    "data": {"shard_pairs": 250_000},
    "train": {"consistency_weight": 0.0, "cut_rate": 0.05, "max_skipped": 20},
}
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


def task_named(options: Any) -> str:
    """The name of the task in the content of a file; "" if the file names no task."""
    task = options.get("task", "") if isinstance(options, Mapping) else ""
    name = task.get("name", "") if isinstance(task, Mapping) else task
    if not isinstance(name, str):
        raise InputError(f"task must be the name of a task, got {name!r}. Write it in quotes.")
    return name


def present_options(options: Mapping[str, Any], task: str, trains: bool = False) -> dict[str, Any]:
    """The options of a file; the options of the task are in the group `task`, without its name.

    Options that belong to other tasks, and options that became constants, are left out. Options for
    training (`trains`) need the values of the constants.
    """
    groups: dict[str, Any] = dict(options)
    if isinstance(model := groups.get("model"), Mapping):
        groups["model"] = with_record(model)
    if isinstance(data := groups.get("data"), Mapping) and data.keys() >= _STORED_DATA:
        groups["data"] = {"held_out_by": "source"} | dict(data)
    if isinstance(data := groups.get("data"), Mapping):
        lists = {name: _without_epochs(data[name]) for name in _CORPORA if data.get(name)}
        groups["data"] = {**data, **lists}
    moved: dict[str, Any] = {}
    for group, names in MOVED.items():
        if isinstance(group_options := groups.get(group), Mapping):
            constants = CONSTANTS.get(group, {})
            gone = {*names, *constants}
            groups[group] = {k: v for k, v in group_options.items() if k not in gone}
            moved |= {name: group_options[name] for name in names if name in group_options}
            for name in constants if trains else ():
                _require_constant(f"{group}.{name}", group_options.get(name), constants[name])
    given = groups.pop("task", {})
    own = {name: value for name, value in moved.items() if name in own_options(options_of(task))}
    if isinstance(given, Mapping):
        own |= {name: value for name, value in given.items() if name != "name"}
    return groups | ({"task": own} if own else {})


def _without_epochs(corpora: Any) -> Any:
    """A list of corpora without the epochs that have them, in whose place are `train.stages`."""
    if not isinstance(corpora, list) or not all(isinstance(x, Mapping) for x in corpora):
        return corpora  # the check of types has the error
    for corpus in corpora:
        for name in _EPOCHS:
            if corpus.get(name):
                raise InputError(
                    f"a corpus has no {name}. Write its epochs as stages of the training, such as "
                    "train: {stages: [{updates: 20000}, {corpora: [clean.en-de], updates: 5000}]}."
                )
    return [{k: v for k, v in corpus.items() if k not in _EPOCHS} for corpus in corpora]


def _require_constant(name: str, value: Any, constant: Any) -> None:
    if value not in (None, constant):
        raise InputError(
            f"{name} is no option any more: it is always {constant}, got {value}. Leave it out, or "
            "train with an earlier version."
        )


def own_options(options: type[TaskOptions]) -> list[str]:
    """The names of a task's options; `name` is left out."""
    return [name for name in options.__match_args__ if name != "name"]


def earlier_order(names: Iterable[str], learned_positions: bool) -> list[str]:
    """The names of all weights of a model in the order of their numbers, before version 0.3.

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
