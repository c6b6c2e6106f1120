"""The Transformer and its step function for searches (paper section 3)."""
