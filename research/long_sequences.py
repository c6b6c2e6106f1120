"""Time and memory of long sequences: full, local, strided and linear self-attention.

    python -m research.long_sequences --output research/results/long_sequences.json

Each measurement is of a language model of bytes with one text of the given length, in a process of
its own: the peak memory and the time of a forward and backward pass, and the time and the cache
of a decoding step after that many tokens. Memory is beyond what the process had with the model
alone. A pattern stops at the first length whose memory, predicted from the lengths before, is
beyond the limit; the row says so. The processes cannot allocate more than the limit either.

The exponents e of cost ~ length^e are fitted to the lengths from 2,048 on: below, parts whose cost
does not depend on the length hide it.
"""

import resource
import statistics
from collections.abc import Sequence
from typing import Any, get_args

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen, numbers
from benchmarks.harness.processes import ProcessError, call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config.model import Attention

ATTENTIONS = get_args(Attention)
COSTS = ("memory_mb", "seconds", "step_ms", "cache_mb")
_FIT_FROM = 2048
_VOCABULARY = 261  # bytes and special ids
_UPDATES, _STEPS = 3, 20
_NO_MEMORY = ("OOM", "Exhausted", "alloc", "Memory", "memory")  # in the errors of a full process


def main(
    attentions: str = "full,local,strided,linear",
    lengths: str = "512,1024,2048,4096,8192,16384",
    window: int = 256,
    layers: int = 1,
    d_model: int = 128,
    limit_gib: int = 8,
    output: str = "",
) -> None:
    """Prints a table of all lengths, and the fitted exponents.

    Args:
        attentions: patterns to measure, with commas between them.
        lengths: numbers of tokens, rising, with commas between them.
        window: model.attention_window.
        layers: of the model.
        d_model: of the model, with heads of size 32 and a d_ff of 4 · d_model.
        limit_gib: the most memory of a process.
        output: result file to write, for example research/results/long_sequences.json.
    """
    at_least_one(window=window, layers=layers, limit_gib=limit_gib)
    sizes = {"window": window, "layers": layers, "d_model": d_model}
    rows: list[dict[str, Any]] = []
    exponents = []
    for attention in chosen(attentions, ATTENTIONS):
        fitting: list[dict[str, Any]] = []
        for length in numbers(lengths):
            row = _row(fitting, attention, length, sizes, limit_gib)
            rows.append(row)
            print(row, flush=True)
            if not row["fits"]:
                break
            fitting.append(row)
        exponents.append({"attention": attention} | {c: exponent(fitting, c) for c in COSTS})
    print(of_rows(rows, left=1))
    print(of_rows(exponents, left=1))
    summary = sizes | {"limit_gib": limit_gib, "exponents": exponents}
    results.save(output, rows, ("tensorflow", "keras"), summary=summary)


def _row(shorter: Sequence[dict], attention: str, length: int, sizes: dict, limit: int) -> dict:
    """The measurement of a length, or why there is none."""
    names = {"attention": attention, "length": length}
    expected = predicted(shorter, length)
    if expected <= limit * 2**10:
        try:
            row = call("research.long_sequences:measured", **names, **sizes, limit_gib=limit)
            return names | {"fits": True} | row
        except ProcessError as error:
            if not any(word in str(error) for word in _NO_MEMORY):
                raise
            print(f"{attention} {length}: {error}", flush=True)
    return names | {"fits": False, "memory_mb": round(expected)} | dict.fromkeys(COSTS[1:])


def predicted(shorter: Sequence[dict], length: int) -> float:
    """Memory in MB: from the last two lengths, as a power of the length; 0 without two."""
    if len(shorter) < 2:
        return 0.0
    memory = exponent(shorter[-2:], "memory_mb", fit_from=0)
    last = shorter[-1]
    return last["memory_mb"] * (length / last["length"]) ** max(memory or 0.0, 0.0)


def exponent(rows: Sequence[dict], cost: str, fit_from: int = _FIT_FROM) -> float | None:
    """The e of cost ~ length^e, by least squares of logarithms; None without two lengths."""
    import numpy as np

    pairs = [(row["length"], row[cost]) for row in rows if row["length"] >= fit_from]
    pairs = [pair for pair in pairs if min(pair) > 0]
    if len(pairs) < 2:
        return None
    x, y = np.log(np.array(pairs, "float64")).T
    return round(float(np.polyfit(x, y, 1)[0]), 2) + 0.0  # no -0


def measured(
    attention: str, length: int, window: int, layers: int, d_model: int, limit_gib: int
) -> dict[str, Any]:
    """The costs of one length; for a process of its own."""
    import keras

    from tf_transformer.config import ModelConfig
    from tf_transformer.models.language_model import LanguageModel

    resource.setrlimit(resource.RLIMIT_DATA, (limit_gib * 2**30, resource.RLIM_INFINITY))
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": layers, "d_model": d_model, "d_ff": 4 * d_model}
    config = ModelConfig(
        **sizes, num_heads=max(d_model // 32, 1), attention=attention, attention_window=window
    )
    model = LanguageModel(_VOCABULARY, config)
    model.build()
    step, cache_bytes = _step(model, length)
    step()
    steps = [usage_of(step)[1].seconds for _ in range(_STEPS)]
    update = _update(model, length)
    before = peak_megabytes()
    first, *usages = [usage_of(update)[1] for _ in range(_UPDATES)]  # the first traces
    return {
        "memory_mb": round(peak_megabytes() - before),
        "seconds": round(statistics.median(usage.seconds for usage in usages or [first]), 3),
        "step_ms": round(1000 * statistics.median(steps), 3),
        "cache_mb": round(cache_bytes / 2**20, 3),
    }


def _update(model: Any, length: int) -> Any:
    """A forward and backward pass of one text."""
    import numpy as np
    import tensorflow as tf

    from tf_transformer.losses.cross_entropy import CrossEntropy
    from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING

    ids = np.random.default_rng(1).integers(4, _VOCABULARY, (1, length), np.int32)
    batch = {"before": tf.constant([[1]]), "text": tf.constant(ids)}

    @tf.function(autograph=False)
    def gradients():
        with tf.GradientTape() as tape:
            loss = LANGUAGE_MODELING.losses(model, batch, CrossEntropy(), training=True).loss
        of_variables = tape.gradient(loss, model.trainable_variables)
        return tf.add_n([tf.reduce_sum(gradient) for gradient in of_variables])

    return lambda: gradients().numpy()


def _step(model: Any, length: int) -> tuple[Any, int]:
    """A decoding step after `length` tokens, and the bytes of its cache."""
    import numpy as np
    import tensorflow as tf

    from tf_transformer.decoding import StepOptions, StepState

    decoder = model.step_function(np.array([[2]]), StepOptions(1, length + 1))
    kept = _cache_after(model, length)
    state = StepState(
        decoder.start.per_hypothesis._replace(cache=kept.per_hypothesis),
        decoder.start.per_sentence._replace(cache=kept.per_sentence),
    )
    call_step = tf.function(lambda ids: decoder(ids, state, length - 1)[0], autograph=False)
    leaves = tf.nest.flatten(kept)
    size = sum(np.asarray(leaf).nbytes for leaf in leaves)
    ids = tf.ones((1, 1), "int32")
    return lambda: call_step(ids).numpy(), size


def _cache_after(model: Any, length: int) -> Any:
    """The cache of a text of `length` tokens, whose keys and values are 0."""
    import tensorflow as tf

    from tf_transformer.decoding.cache import Kept, Rows
    from tf_transformer.layers.stored import KeyValue

    attentions = [layer.self_attention for layer in model.decoder.layers]
    nothing = [attention.nothing(1) for attention in attentions]
    if not isinstance(nothing[0], KeyValue):  # sums
        return Kept(nothing, ())
    rows = min(length, attentions[0].window or length)
    layers = [
        KeyValue(*(tf.zeros((1, part.shape[1], rows, part.shape[3])) for part in of_layer))
        for of_layer in nothing
    ]
    positions = tf.range(length - rows, length)[None]
    return Kept(tf.ones((1, 1, rows), "bool"), Rows(layers, positions))


if __name__ == "__main__":
    command_line.run(main)
