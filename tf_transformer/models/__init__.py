"""The Transformer (paper section 3), other models, and their step functions for searches.

An import of this package registers all layers and models with Keras.
"""

from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel, TextEncoder
from tf_transformer.models.ensemble import Ensemble
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer

__all__ = [
    "Classifier",
    "Ensemble",
    "LanguageModel",
    "MaskedLanguageModel",
    "RecurrentModel",
    "TextEncoder",
    "Transformer",
]
