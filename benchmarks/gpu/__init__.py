"""The speed of training on a GPU, compared with other libraries."""
