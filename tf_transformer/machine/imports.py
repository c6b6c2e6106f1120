"""Fast imports of TensorFlow and Keras, which a command waits for."""

import gc
import importlib.abc
import sys
from typing import Any

# TensorFlow Lite and Keras import these packages if they are installed. Commands need neither for
# them. In the process of a translation, they take 130 MB and 0.7 s.
_OPTIONAL = ("jax", "matplotlib")
_OBJECTS = 100_000  # more than 700: an import makes objects that live on


def import_less() -> None:
    """Makes the imports of TensorFlow and Keras faster. Call it before them.

    They do not import optional packages, which other imports find as usual. Python looks for
    unreachable objects less often.
    """
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    if not any(isinstance(finder, _WithoutOptional) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutOptional())


class _WithoutOptional(importlib.abc.MetaPathFinder):
    """Finds no optional package while TensorFlow or Keras is being imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in _OPTIONAL and any(map(_is_being_imported, ("tensorflow", "keras"))):
            raise ModuleNotFoundError(f"{name} is optional, and not imported.", name=name)


def _is_being_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)
