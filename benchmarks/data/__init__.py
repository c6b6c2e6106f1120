"""The speed and the memory of data: text, ids, batches."""
