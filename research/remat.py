"""Compares updates with and without `model.remat`: peak memory and time.

    python -m research.remat --preset tiny --sentences 32 --tokens 256

Each of the two runs in a process of its own. The memory is that beyond what the process had with
the model alone. Logits and their softmax (sentences × tokens × vocabulary) are kept in both.
"""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line

_VOCABULARY = 8000
_UPDATES = 5


def main(preset: str = "tiny", sentences: int = 32, tokens: int = 256, output: str = "") -> None:
    """Measures memory and time of updates with and without rematerialised layers.

    Args:
        preset: size of the model.
        sentences: of a batch.
        tokens: of every source and every target.
        output: result file to write, for example research/results/remat.json.
    """
    size = {"preset": preset, "sentences": sentences, "tokens": tokens}
    rows = [call("research.remat:measured", remat=remat, **size) for remat in (False, True)]
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "keras"), summary=size)


def measured(preset: str, sentences: int, tokens: int, remat: bool) -> dict[str, Any]:
    """A row of the table; for a process of its own."""
    import keras

    from tf_transformer.config import ModelConfig
    from tf_transformer.losses.cross_entropy import CrossEntropy
    from tf_transformer.models.transformer import Transformer
    from tf_transformer.tasks.translation import TRANSLATION
    from tf_transformer.training.update import Updater, make_optimizer

    keras.utils.set_random_seed(1)
    model = Transformer(_VOCABULARY, ModelConfig.preset(preset, remat=remat))
    model.build()
    updater = Updater(TRANSLATION, model, make_optimizer(model, 1e-4), CrossEntropy(0.1))
    batches = _batches(sentences, tokens)

    def update() -> None:
        updater.update(batches)
        updater.read_metrics()

    before = peak_megabytes()
    _, *usages = [usage_of(update)[1] for _ in range(_UPDATES)]  # the first update traces
    return {
        "remat": remat,
        "memory_mb": round(peak_megabytes() - before),
        "seconds": round(statistics.median(usage.seconds for usage in usages), 3),
        "minor_faults": round(statistics.mean(usage.minor_faults for usage in usages)),
        "system_seconds": round(statistics.mean(usage.system_seconds for usage in usages), 3),
    }


def _batches(sentences: int, tokens: int) -> Iterator:
    """One random batch, again and again."""
    import numpy as np
    import tensorflow as tf

    ids = np.random.default_rng(1).integers(4, _VOCABULARY, (2, sentences, tokens), np.int32)
    batch = {"source": ids[0], "target": ids[1]}
    return iter(tf.data.Dataset.from_tensors((batch,)).repeat())


if __name__ == "__main__":
    command_line.run(main)
