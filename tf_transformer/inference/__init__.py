"""From texts to predictions: search, predictors and their graphs."""
