"""Data: from text to batches of ids."""
