"""Keras' settings of this process and this project's own, which its numbers depend on."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from tf_transformer.errors import InputError

_lock = threading.Lock()
_users = 0
_theirs: tuple = ()


def for_commands() -> None:
    """Makes Keras start with its defaults, whatever its configuration file holds.

    Call it before the import of Keras.

    Raises:
        InputError: when the environment asks for another backend than TensorFlow.
    """
    _require_tensorflow(os.environ.get("KERAS_BACKEND") or "tensorflow")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ["KERAS_HOME"] = os.path.join(os.devnull, "keras")  # has no file


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Types and constants of this project in a block, or in a function that it decorates.

    Under another `floatx`, for example, the type of `keras.ops.arange` differs. Threads may be in
    such blocks at the same time; the last one restores the settings of the process.

    Raises:
        InputError: with another backend of Keras than TensorFlow.
    """
    import keras

    global _users, _theirs
    _require_tensorflow(keras.backend.backend())
    config = keras.config
    with _lock:
        _users += 1
        if _users == 1:
            _theirs = config.floatx(), config.dtype_policy(), config.epsilon()
            _set("float32", "float32", 1e-7)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _set(*_theirs)


def _set(floatx: str, policy: Any, epsilon: float) -> None:
    import keras

    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
    keras.config.set_epsilon(epsilon)


def _require_tensorflow(backend: str) -> None:
    if backend != "tensorflow":
        raise InputError(
            f"Keras' backend is {backend}; runs need tensorflow. Set KERAS_BACKEND=tensorflow. "
            "The models alone work with every backend."
        )
