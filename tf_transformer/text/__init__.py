"""Text and ids: normalization, tokenizers, sequences of ids, and word alignment."""
