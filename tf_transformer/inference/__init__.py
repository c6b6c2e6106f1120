"""Texts to predictions: search, predictors, and the same as a graph."""
