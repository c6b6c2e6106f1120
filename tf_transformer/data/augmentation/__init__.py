"""Changes of the texts of a training, so that a model also learns unusual input."""
