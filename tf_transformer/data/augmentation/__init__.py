"""Changes of the texts of a training run, so that a model also learns unusual input."""
