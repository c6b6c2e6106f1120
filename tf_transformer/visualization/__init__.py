"""Pages and pictures of what a model computes."""
