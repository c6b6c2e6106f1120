"""The settings of Keras. This project's results depend on them, so it sets its own."""

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
    """Makes Keras start with its defaults and ignore its configuration file.

    Call it before Keras is imported. Another backend than TensorFlow is an `InputError`.
    """
    _require_tensorflow(os.environ.get("KERAS_BACKEND") or "tensorflow")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ["KERAS_HOME"] = os.path.join(os.devnull, "keras")  # a folder without files


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """Sets the dtypes and constants of this project for a block, or for a decorated function.

    For example, `floatx` changes the dtype of `keras.ops.arange`. Several threads may be in such
    blocks at the same time. The last thread restores the settings of the process. Another backend
    than TensorFlow is an `InputError`.
    """
    import keras

    global _users, _theirs
    _require_tensorflow(keras.backend.backend())
    config = keras.config
    with _lock:
        _users += 1
        if _users == 1:
            _theirs = config.floatx(), config.dtype_policy(), config.epsilon()
            _set(config, "float32", "float32", 1e-7)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _set(config, *_theirs)


def _set(config: Any, floatx: str, policy: Any, epsilon: float) -> None:
    config.set_floatx(floatx)
    config.set_dtype_policy(policy)
    config.set_epsilon(epsilon)


def _require_tensorflow(backend: str) -> None:
    if backend != "tensorflow":
        raise InputError(
            f"Keras' backend is {backend}; runs need tensorflow. Set KERAS_BACKEND=tensorflow. "
            "Only models and layers work with every backend."
        )
