"""What --model.remat saves: python benchmarks/remat.py [--sentences 32] [--tokens 256].

Prints the peak memory and the time of updates with and without, each in a process of its own.
README.md beside this file says how to read it.
"""

import resource
import subprocess
import sys
import time

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.commands import command_line
from tf_transformer.config import ModelConfig
from tf_transformer.models.transformer import Transformer
from tf_transformer.training.learner import Learner, make_optimizer

_VOCABULARY = 8000
_UPDATES = 5


def main(
    preset: str = "tiny", sentences: int = 32, tokens: int = 256, remat: bool | None = None
) -> None:
    """Compares updates with and without recomputed layers.

    Args:
        preset: size of the model.
        sentences: of a batch.
        tokens: of every source and every target.
        remat: measure one of the two in this process.
    """
    if remat is not None:
        print(measured(ModelConfig.preset(preset, remat=remat), sentences, tokens))
        return
    print("| layers are | MB for updates | ms an update |\n| --- | ---: | ---: |")
    for flag, name in ((False, "kept"), (True, "computed again")):
        options = [f"--preset={preset}", f"--sentences={sentences}", f"--tokens={tokens}"]
        command = [sys.executable, __file__, *options, f"--remat={str(flag).lower()}"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        print(f"| {name} | {done.stdout.strip()} |", flush=True)


def measured(config: ModelConfig, sentences: int, tokens: int) -> str:
    """Megabytes that updates take over what the model took, and the median milliseconds of one."""
    keras.utils.set_random_seed(1)
    model = Transformer(_VOCABULARY, config)
    model.build()
    learner = Learner(model, make_optimizer(model, 1e-4), label_smoothing=0.1)
    ids = np.random.default_rng(1).integers(4, _VOCABULARY, (2, sentences, tokens), np.int32)
    batches = iter(tf.data.Dataset.from_tensors(((ids[0], ids[1]),)).repeat())
    before = _peak()
    seconds = []
    for _ in range(_UPDATES):
        start = time.perf_counter()
        learner.update(batches)
        learner.figures()
        seconds.append(time.perf_counter() - start)
    median = float(np.median(seconds[1:]))  # the first traces
    return f"{_peak() - before:,.0f} | {1000 * median:,.0f}"


def _peak() -> float:
    """Megabytes at the worst moment of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    command_line.run(main)
