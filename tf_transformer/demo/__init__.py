"""A local page for translation: `tf-transformer demo`."""
