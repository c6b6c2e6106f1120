"""GPUs that several processes use at the same time."""

import contextlib
import os
import re

# For a process that computes on CPUs, beside one that may hold the memory of all GPUs.
WITHOUT_GPUS = {"CUDA_VISIBLE_DEVICES": ""}
# What TensorFlow says when another process holds the memory that it needs.
_FULL = r"OOM when allocating|out of memory|OUT_OF_MEMORY|without BLAS support|DNN library init"


def has_gpu() -> bool:
    """Whether this process computes on a GPU."""
    import tensorflow as tf

    return bool(tf.config.get_visible_devices("GPU"))


def share_gpus() -> None:
    """Makes TensorFlow take memory of GPUs as it needs it. Call it before TensorFlow's import."""
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


def use_no_gpu() -> None:
    """Makes TensorFlow compute on CPUs. It has no effect after TensorFlow's first computation."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # TensorFlow has already computed something
        tf.config.set_visible_devices([], "GPU")


def explain_full(error: Exception) -> str:
    """A message for an error of TensorFlow that says that the memory of a GPU is full, else ""."""
    text = " ".join(str(error).split())
    if not (re.search(_FULL, text) and re.search("GPU|CUDA|StreamExecutor|DNN", text)):
        return ""
    return (
        f"the memory of the GPU is full: {text:.300}. Other processes may use it; nvidia-smi lists "
        "them. Wait for them, make batches smaller, or give CUDA_VISIBLE_DEVICES= before the "
        "command to compute on the CPU."
    )
