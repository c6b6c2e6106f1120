"""The Transformer (paper section 3), other models, and their step functions for searches."""

import keras  # noqa: F401  first: see tf_transformer/registration.py
