"""The Transformer of *Attention Is All You Need* for TensorFlow and Keras 3.

Importing this package registers all layers and the model with Keras, so that
`keras.saving.load_model` opens a saved Transformer.
"""

import os

# Before TensorFlow is imported: hides most of its notices. Set the variable to see them.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.models.transformer import Transformer

__version__ = "0.1.0"

__all__ = [
    "Config",
    "DataConfig",
    "DecodeConfig",
    "ModelConfig",
    "TrainConfig",
    "Transformer",
    "__version__",
]
