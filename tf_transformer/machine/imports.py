"""A fast import of TensorFlow and Keras, which a command waits for."""

import gc
import importlib
import sys

# TensorFlow Lite and Keras import these packages if they are installed. Commands need neither for
# them. In the process of a translation, they take 130 MB and 0.7 s.
_OPTIONAL = ("jax", "matplotlib")
_OBJECTS = 100_000  # more than 700: an import makes objects that live on


def import_tensorflow() -> None:
    """Imports TensorFlow and Keras, without optional packages that they would import.

    Later imports find these packages as usual. Python looks for unreachable objects less often.
    """
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: there is no such
    try:
        importlib.import_module("keras")
    finally:
        for name in hidden:
            del sys.modules[name]
