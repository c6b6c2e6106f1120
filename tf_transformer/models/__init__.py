"""The Transformer and its step function for searches (paper section 3)."""

import keras  # noqa: F401  first: see tf_transformer/registration.py
