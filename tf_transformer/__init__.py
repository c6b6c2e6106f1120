"""The Transformer of *Attention Is All You Need* for TensorFlow and Keras 3.

`import tf_transformer.models` registers all layers and models with Keras, so that
`keras.saving.load_model` opens a saved Transformer. This package alone does not import Keras, which
takes seconds, because the commands check their options first.
"""

import os
from typing import TYPE_CHECKING, Any

# Hides most of TensorFlow's notices; must come before its import. Set the variable to see them.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig

if TYPE_CHECKING:
    from tf_transformer.models.transformer import Transformer

__version__ = "0.2.0"

__all__ = [
    "Config",
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "TrainConfig",
    "Transformer",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Imports the model, which imports Keras, when a program needs it."""
    if name == "Transformer":
        from tf_transformer.models.transformer import Transformer

        return Transformer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
