"""Registries of tasks and metrics. An item is imported when it is needed."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from tf_transformer.errors import InputError


class Registry:
    """Items by name. An item may be the text "module:attribute", which `get` imports.

    `kind` names the items in error messages.
    """

    def __init__(self, kind: str, items: Mapping[str, Any] | None = None):
        self._kind = kind
        self._items = dict(items or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def register(self, name: str, item: Any) -> None:
        """Adds an item, or replaces the item with this name."""
        self._items[name] = item

    def get(self, name: str) -> Any:
        """The item with a registered name, or "module:attribute" of any other item."""
        item = self._items.get(name, name)
        if not isinstance(item, str):
            return item
        module, _, attribute = item.partition(":")
        if not (module and attribute):
            raise InputError(
                f"unknown {self._kind} {name!r}; expected {', '.join(sorted(self._items))}, or "
                "module:attribute."
            )
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{self._kind} {name!r} cannot be imported: {error}.") from error


# Classes of options that need no import of the task, which would import TensorFlow.
OPTIONS = {
    "translation": "tf_transformer.config.task:TranslationOptions",
    "language_modeling": "tf_transformer.config.task:TaskOptions",
    "parsing": "tf_transformer.config.task:ParsingOptions",
    "masked_language_modeling": "tf_transformer.config.task:TaskOptions",
    "classification": "tf_transformer.config.task:ClassificationOptions",
}
# tasks/translation.py defines TRANSLATION, and so on.
TASKS = Registry("task", {name: f"tf_transformer.tasks.{name}:{name.upper()}" for name in OPTIONS})


def register_task(name: str, task: Any) -> None:
    """Registers a task for `Config.task` and `--task`.

    The text "module:attribute" in place of a task is imported when the task is needed.
    """
    TASKS.register(name, task)
    OPTIONS.pop(name, None)


def options_of(name: str) -> Any:
    """The class of a task's options, a subclass of `TaskOptions`; see `Registry.get`."""
    if name in OPTIONS:
        return Registry("options of the task").get(OPTIONS[name])
    return TASKS.get(name).Options
