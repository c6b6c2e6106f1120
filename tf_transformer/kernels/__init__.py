"""Equations in two forms: as the paper writes them, and tuned."""
