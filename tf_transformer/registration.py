"""Registers the models and all layers with Keras, without importing Keras.

Keras takes seconds to import. The commands check their options first.

The import of Keras may come from a package that the models need, such as `layers`. These packages
import Keras before their own modules, and the models import their modules, not the packages, which
are half imported at that moment.
"""

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# They import, and so register, all layers.
MODELS = (
    "tf_transformer.models.transformer",
    "tf_transformer.models.language_model",
    "tf_transformer.models.recurrent",
    "tf_transformer.models.encoder_only",
)


def register_with_keras() -> None:
    """Imports the models: now if Keras is imported, else when Keras has been imported."""
    if "keras" in sys.modules:
        _import_models()
    else:
        sys.meta_path.insert(0, _AfterKeras())


def _import_models() -> None:
    for name in MODELS:
        importlib.import_module(name)


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Finds Keras as usual, and imports the models after it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "keras" else None
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                sys.meta_path.remove(self)
                execute(module)
                _import_models()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
