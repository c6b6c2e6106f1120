"""Registers the models and all layers with Keras, without an import of Keras.

Keras takes seconds to import, and the commands check their options first.

A package that the models need, such as `layers`, may be the first to import Keras. The models are
then imported while that package is half imported. It works because these packages import Keras
before their own modules, and because the models import the modules directly.
"""

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# These modules import all layers, and an import registers a layer.
MODELS = (
    "tf_transformer.models.transformer",
    "tf_transformer.models.language_model",
    "tf_transformer.models.recurrent",
    "tf_transformer.models.encoder_only",
)


def register_with_keras() -> None:
    """Imports the models now if Keras is imported, else right after Keras."""
    if "keras" in sys.modules:
        _import_models()
    else:
        sys.meta_path.insert(0, _AfterKeras())


def _import_models() -> None:
    for name in MODELS:
        importlib.import_module(name)


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Finds Keras as usual, and imports the models after Keras."""

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
