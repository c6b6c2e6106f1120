"""tensorflow-text's SentencePiece ops, without its other ops."""

import functools
import importlib.util
import pathlib
from typing import Any

import tensorflow as tf


@functools.cache
def sentencepiece_ops() -> Any:
    """Loads the ops, so that TensorFlow can load and run graphs with them; returns their functions.

    `import tensorflow_text` would load 22 libraries, which takes 110 MB of memory.

    Example:
        >>> sentencepiece_ops().sentencepiece_tokenize_op.__name__
        'sentencepiece_tokenize_op'
    """
    package = importlib.util.find_spec("tensorflow_text")
    if package is None or package.origin is None:
        raise ImportError("TensorFlow Text is missing. Install it: pip install tensorflow-text")
    library = pathlib.Path(package.origin).parent / "python/ops/_sentencepiece_tokenizer.so"
    return tf.load_op_library(str(library))
