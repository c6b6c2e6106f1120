"""Text and ids: normalization, tokenizers, sequences of ids, words."""
