"""Compares the model's variants with the plain one: speed of training and of search, and memory.

    python -m benchmarks.variants --preset tiny --output results/variants.json

Each variant runs in a process of its own; all variants make one round, then the next. The memory is
that of updates, beyond what the process had with the model alone.
"""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import PRESETS, ModelConfig

VOCABULARY = 8000
FIRST_ID = 4  # after the special ids
BEAM = 4


def variants(preset: str) -> dict[str, dict[str, Any]]:
    """Options of each variant of a preset, by name; `plain` is the paper's model."""
    plain = PRESETS[preset]
    both = 2 * plain.num_layers
    encoder = 3 * both // 4
    return {
        "plain": {},
        **{name: {"position": name} for name in ("learned", "rotary", "relative")},
        **{name: {"position": name} for name in ("t5", "alibi", "none")},
        "gelu": {"activation": "gelu"},
        "swiglu": {"activation": "swiglu", "d_ff": 2 * plain.d_ff // 3},  # as many parameters
        "rms_norm": {"normalization": "rms_norm"},
        "grouped_queries": {"num_key_value_heads": plain.num_heads // 2},
        "multi_query": {"num_key_value_heads": 1},
        "deep_encoder": {"num_encoder_layers": encoder, "num_decoder_layers": both - encoder},
    }


def main(
    preset: str = "tiny",
    names: str = "",
    sentences: int = 64,
    tokens: int = 24,
    updates: int = 20,
    searches: int = 10,
    rounds: int = 3,
    output: str = "",
) -> None:
    """Measures every variant beside the plain model of the same size.

    Args:
        preset: size of the model.
        names: variants to measure, with commas between them; all when empty.
        sentences: of a batch, in updates and searches.
        tokens: of every source, every target and every translation.
        updates: timed updates of a round.
        searches: timed searches of a round, greedy and with a beam of 4 each.
        rounds: processes of each variant, one after the other.
        output: result file to write, for example results/variants.json.
    """
    at_least_one(sentences=sentences, tokens=tokens, updates=updates, searches=searches)
    at_least_one(rounds=rounds)
    chosen(preset, PRESETS)
    known = variants(preset)
    selected = chosen(names, known) if names else list(known)
    size = {"preset": preset, "sentences": sentences, "tokens": tokens}
    work = size | {"updates": updates, "searches": searches}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in selected}
    for _ in range(rounds):
        for name in selected:
            found[name].append(call("benchmarks.variants:measured", variant=name, **work))
    rows = [median(name, each) for name, each in found.items()]
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"), summary=size)


def median(name: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table: the median of each number over all rounds."""
    return {"variant": name} | {
        field: round(statistics.median(each[field] for each in rounds), 3) for field in rounds[0]
    }


def measured(
    variant: str, preset: str, sentences: int, tokens: int, updates: int, searches: int
) -> dict[str, Any]:
    """The numbers of one round; for a process of its own."""
    import keras

    from tf_transformer.models.transformer import Transformer

    keras.utils.set_random_seed(1)
    config = ModelConfig.preset(preset, **variants(preset)[variant])
    model = Transformer(VOCABULARY, config)
    model.build()
    ids = _ids(sentences, tokens)
    before = peak_megabytes()
    usages = _updates(model, ids, updates)
    memory = peak_megabytes() - before
    greedy, beam = (_search_seconds(model, ids[0], size, searches) for size in (1, BEAM))
    seconds = statistics.median(usage.seconds for usage in usages)
    stack, found = config.decoder, sentences * tokens
    numbers = stack.num_layers * stack.num_key_value_heads * (stack.key_dim + stack.value_dim)
    return {
        "parameters": model.count_params(),
        "training_tokens_per_second": round(found / seconds),
        "greedy_tokens_per_second": round(found / greedy),
        "beam_tokens_per_second": round(found / beam),
        "memory_mb": round(memory),
        "cache_bytes_per_token": 4 * numbers,
        "minor_faults": round(statistics.mean(usage.minor_faults for usage in usages)),
        "system_seconds": statistics.mean(usage.system_seconds for usage in usages),
    }


def _ids(sentences: int, tokens: int):
    """Random sources and targets (2, B, T)."""
    import numpy as np

    return np.random.default_rng(1).integers(FIRST_ID, VOCABULARY, (2, sentences, tokens), np.int32)


def _updates(model, ids, count: int) -> list:
    """The costs of updates; two before them are not counted, the first of which traces."""
    import tensorflow as tf

    from tf_transformer.tasks.translation import TRANSLATION
    from tf_transformer.training.update import Updater, make_optimizer

    updater = Updater(TRANSLATION, model, make_optimizer(model, 1e-4), label_smoothing=0.1)
    batch = {"source": ids[0], "target": ids[1]}
    batches: Iterator = iter(tf.data.Dataset.from_tensors((batch,)).repeat())

    def update() -> None:
        updater.update(batches)
        updater.read_metrics()

    return [usage_of(update)[1] for _ in range(count + 2)][2:]


def _search_seconds(model, source, beam_size: int, count: int) -> float:
    """The median time of searches that all find exactly as many tokens as the source has."""
    import tensorflow as tf

    from tf_transformer.config import DecodeConfig
    from tf_transformer.search import Search

    length = source.shape[1]
    limits = {"min_length": length, "max_length": length}
    search = Search(model, DecodeConfig(beam_size=beam_size, **limits))
    run = tf.function(search, [tf.TensorSpec((None, None), tf.int32)], autograph=False)
    found = run(source).lengths.numpy()
    if (found != length).any():
        raise RuntimeError(f"expected translations of {length} tokens, got {found.tolist()}.")
    return statistics.median(usage_of(lambda: run(source))[1].seconds for _ in range(count))


if __name__ == "__main__":
    command_line.run(main)
