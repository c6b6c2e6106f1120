"""What came after the paper: other kinds of attention, positions, normalization and training."""
