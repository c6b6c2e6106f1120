"""A local page to translate on: `tf-transformer demo`."""
