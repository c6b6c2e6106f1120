"""The speed of this project beside other systems. See README.md."""

import os

# Before TensorFlow is imported, here and in the processes that a benchmark starts.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
