"""Tasks: pairs, clean-up and score of what a model is trained for."""
