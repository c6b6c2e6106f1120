"""The speed and the memory of training, compared with other libraries."""
