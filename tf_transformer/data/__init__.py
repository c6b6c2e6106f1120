"""Data: from texts to batches of ids."""
