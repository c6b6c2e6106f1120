"""Writes a run's averaged weights to a small folder, which each command takes as --run_dir."""

import os
from dataclasses import replace

import numpy as np
import tensorflow as tf

from tf_transformer import tasks
from tf_transformer.config import DType
from tf_transformer.models.names import by_name
from tf_transformer.run import weights
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run


def write(run: Run, to: str | os.PathLike, dtype: DType) -> str:
    """Writes the configuration, the codec, samples and one checkpoint, then reads the checkpoint.

    The folder has no state of the training, which cannot resume there. A new training run can start
    with the weights (`train.init_from`), which `DecodeConfig.average` selects. The dtype is that of
    the stored weights; the computation is in float32. Returns a summary.
    """
    config, small = run.config, RunFolder(to)
    model = run.model(tasks.for_run(config).build_model)
    small.path.mkdir(parents=True, exist_ok=True)
    whole = replace(config.train, lora=0)  # the model has the products of the adapters
    small.save_config(replace(config, train=whole, decode=replace(config.decode, average=1)))
    small.save_samples(run.folder.load_samples())
    run.codec.save(small.path)
    update = weights.updates_of(run.folder, config.decode.average)[-1]
    weights.save_weights(small, by_name(model), dtype, update)
    expected = [tf.cast(tf.cast(x.value, dtype), tf.float32).numpy() for x in model.weights]
    weights.load_weights(small, model, 1)
    if not all(map(np.array_equal, model.get_weights(), expected)):
        raise RuntimeError(
            f"the weights in {small.path} differ from the weights of {run.folder.path}."
        )
    size = sum(path.stat().st_size for path in small.path.rglob("*") if path.is_file())
    return f"{model.count_params():,} parameters in {dtype}, {size / 1e6:.1f} MB"
