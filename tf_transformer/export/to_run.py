"""A run's averaged weights in a small folder that every command takes as --run_dir."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer import tasks
from tf_transformer.config import DType
from tf_transformer.run import weights
from tf_transformer.run.folder import RunFolder


def write(
    run_dir: str | os.PathLike,
    folder: str | os.PathLike,
    dtype: DType,
    task_options: Mapping[str, Any] | None = None,
    **decode_options: Any,
) -> str:
    """Writes the configuration, codec, samples and one checkpoint, and reads it again.

    Nothing else of the run is copied: its training cannot go on, but another one can start with
    these weights (`train.init_from`).

    Args:
        run_dir: the run's folder.
        folder: the folder to write.
        dtype: of the stored weights. They are computed with in float32.
        task_options: options of the task to store.
        **decode_options: fields of `DecodeConfig` to store; `average` names the weights.

    Returns:
        a summary.

    Raises:
        InputError: as `weights.load_model`.
        RuntimeError: when the weights in the folder differ from those of the run.
    """
    run, small = RunFolder(run_dir), RunFolder(folder)
    config = run.load_config(task_options)
    build_model = tasks.for_run(config).build_model
    model, codec, decode = weights.load_model(run_dir, build_model, **decode_options)
    small.path.mkdir(parents=True, exist_ok=True)
    small.save_config(replace(config, decode=replace(decode, average=1)))
    small.save_samples(run.load_samples())
    codec.save(small.path)
    update = weights.updates_of(run_dir, decode.average)[-1]
    weights.save_weights(folder, model.weights, dtype, update)
    values = weights.tensors(model.weights)
    expected = [tf.cast(tf.cast(value, dtype), tf.float32).numpy() for value in values]
    weights.load_weights(folder, model, 1)
    if not all(map(np.array_equal, model.get_weights(), expected)):
        raise RuntimeError(f"the weights in {folder} differ from those of {run_dir}.")
    size = sum(path.stat().st_size for path in small.path.rglob("*") if path.is_file())
    return f"{model.count_params():,} parameters in {dtype}, {size / 1e6:.1f} MB"
