"""Studies of the model and of this code. See README.md."""

import os

# Before TensorFlow is imported, here and in the processes that a study starts.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
