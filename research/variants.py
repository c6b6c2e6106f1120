"""Compares the model's variants with the plain one: speed of training and prediction, and memory.

    python -m research.variants --preset tiny --output research/results/variants.json

Each variant runs in a process of its own; all variants make one round, then the next. A prediction
is a greedy search or, of a model that is only an encoder, one pass over the text. The memory is
that of updates, beyond what the process had with the model alone.
"""

import statistics
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import PRESETS, Config, DecodeConfig, ModelConfig

VOCABULARY = 8000
FIRST_ID = 4  # after the special ids
BEAM = 4
LABELS = ("a", "b")  # of texts
BRACKETS = ("NP", "PP", "S", "VP")


class Variant(NamedTuple):
    """A model, by the options in which it differs from the plain one, and its task."""

    options: dict[str, Any] = {}  # noqa: RUF012  never changed
    task: str = "translation"
    grammar: bool = False  # whether the search finds trees only


def variants(preset: str) -> dict[str, Variant]:
    """The variants of a preset, by name; `plain` is the paper's model."""
    plain = PRESETS[preset]
    both = 2 * plain.num_layers
    encoder = 3 * both // 4
    options: dict[str, dict[str, Any]] = {
        **{name: {"position": name} for name in ("learned", "rotary", "relative")},
        **{name: {"position": name} for name in ("t5", "alibi", "none")},
        "gelu": {"activation": "gelu"},
        "swiglu": {"activation": "swiglu", "d_ff": 2 * plain.d_ff // 3},  # as many parameters
        "rms_norm": {"normalization": "rms_norm"},
        "grouped_queries": {"num_key_value_heads": plain.num_heads // 2},
        "multi_query": {"num_key_value_heads": 1},
        "deep_encoder": {"num_encoder_layers": encoder, "num_decoder_layers": both - encoder},
        "local": {"attention": "local", "attention_window": 8},
        "linear": {"attention": "linear"},
    }
    # About as many parameters as the plain model.
    layers = 2 if preset == "tiny" else plain.num_layers
    recurrent = {"d_model": 11 * plain.d_model // 8, "num_layers": layers}
    options |= {name: recurrent | {"architecture": name} for name in ("bahdanau", "luong")}
    tasks = ("language_modeling", "masked_language_modeling", "classification")
    return {
        "plain": Variant(),
        **{name: Variant(changes) for name, changes in options.items()},
        "parsing": Variant(grammar=True),
        **{name: Variant(task=name) for name in tasks},
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
        searches: timed predictions of a round, and searches with a beam of 4.
        rounds: processes of each variant, one after the other.
        output: result file to write, for example research/results/variants.json.
    """
    at_least_one(sentences=sentences, tokens=tokens, updates=updates, searches=searches)
    at_least_one(rounds=rounds)
    chosen(preset, PRESETS)
    known = variants(preset)
    selected = chosen(names, known) if names else list(known)
    size = {"preset": preset, "sentences": sentences, "tokens": tokens}
    work = size | {"updates": updates, "searches": searches}
    rounds_of: dict[str, list[dict[str, Any]]] = {name: [] for name in selected}
    for _ in range(rounds):
        for name in selected:
            rounds_of[name].append(call("research.variants:measured", variant=name, **work))
    rows = [median(name, measurements) for name, measurements in rounds_of.items()]
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"), summary=size)


def median(name: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table: the median of each number over all rounds."""
    first, *_ = rounds
    return {"variant": name} | {
        field: value and round(statistics.median(numbers[field] for numbers in rounds), 3)
        for field, value in first.items()
    }


def measured(
    variant: str, preset: str, sentences: int, tokens: int, updates: int, searches: int
) -> dict[str, Any]:
    """The numbers of one round; for a process of its own."""
    import keras

    from tf_transformer import tasks
    from tf_transformer.config.task import ClassificationOptions

    keras.utils.set_random_seed(1)
    options, name, grammar = variants(preset)[variant]
    model_config = ModelConfig.preset(preset, **options)
    own = ClassificationOptions(labels=LABELS) if name == "classification" else name
    config = Config(task=own, model=model_config)
    task = tasks.get(name)
    codec = types.SimpleNamespace(size=lambda field: VOCABULARY)  # the part that models need
    model = task.build_model(config, codec, "float32")
    ids = _ids(sentences, tokens)
    before = peak_megabytes()
    usages = _updates(task, model, ids, updates)
    memory = peak_megabytes() - before
    found = sentences * tokens
    return {
        "parameters": model.count_params(),
        "training_tokens_per_second": round(
            found / statistics.median(usage.seconds for usage in usages)
        ),
        **_prediction_speeds(model, ids[0], grammar, searches),
        "memory_mb": round(memory),
        "cache_bytes_per_token": _cache_bytes(model),
        "minor_faults": round(statistics.mean(usage.minor_faults for usage in usages)),
        "system_seconds": statistics.mean(usage.system_seconds for usage in usages),
    }


def _cache_bytes(model) -> int | None:
    """The bytes that a decoder keeps of each token; None if they do not grow with the tokens."""
    config = model.config
    recurrent = config.architecture != "transformer" or config.attention == "linear"
    if recurrent or not hasattr(model, "step_function"):
        return None
    stack = config.decoder
    return 4 * stack.num_layers * stack.num_key_value_heads * (stack.key_dim + stack.value_dim)


def _ids(sentences: int, tokens: int):
    """Random sources and targets (2, B, T)."""
    import numpy as np

    return np.random.default_rng(1).integers(FIRST_ID, VOCABULARY, (2, sentences, tokens), np.int32)


def _updates(task, model, ids, count: int) -> list:
    """The costs of updates; two before them are not counted, the first of which traces."""
    import numpy as np
    import tensorflow as tf

    from tf_transformer.losses.cross_entropy import CrossEntropy
    from tf_transformer.training.update import Updater, make_optimizer

    updater = Updater(task, model, make_optimizer(model, 1e-4), CrossEntropy(0.1))
    source, target = ids
    ones = np.ones_like(target[:, :1])
    words = np.arange(1, target.shape[1] + 1) % target.shape[1] + 0 * target  # the end has none
    batch = {"source": source, "target": target}  # the names of all tasks
    batch |= {"before": ones, "text": target, "words": words, "labels": ones}
    batches: Iterator = iter(tf.data.Dataset.from_tensors((batch,)).repeat())

    def update() -> None:
        updater.update(batches)
        updater.read_metrics()

    return [usage_of(update)[1] for _ in range(count + 2)][2:]


def _prediction_speeds(model, source, grammar: bool, count: int) -> dict[str, int | None]:
    """Tokens per second, greedy and with a beam; of an encoder, those of a pass over the source."""
    import tensorflow as tf

    ids = tf.TensorSpec((None, None), tf.int32)
    if not hasattr(model, "step_function"):
        encode = tf.function(model, [ids], autograph=False)
        seconds = [usage_of(lambda: encode(source))[1].seconds for _ in range(count + 1)][1:]
        speeds = [source.size / statistics.median(seconds), None]
    else:
        speeds = [_search_speed(model, source, grammar, size, count) for size in (1, BEAM)]
    names = ("prediction_tokens_per_second", "beam_tokens_per_second")
    return {name: speed and round(speed) for name, speed in zip(names, speeds, strict=True)}


def _search_speed(model, source, grammar: bool, beam_size: int, count: int) -> float:
    """Tokens per second of searches that find as many tokens as the source has, or trees."""
    import tensorflow as tf

    from tf_transformer.inference.search import Search
    from tf_transformer.parsing.grammar import TreeGrammar

    length = source.shape[1]
    limits = {"min_length": length - 1, "max_length": length}
    if grammar:
        limits = {"max_extra_length": length}
    config = DecodeConfig(beam_size=beam_size, **limits)
    search = Search(model, config, grammar=TreeGrammar(_actions()) if grammar else None)
    ids = tf.TensorSpec((None, None), tf.int32)
    run = tf.function(search, [ids], autograph=False)
    lengths = run(source).lengths.numpy()
    if not grammar and (lengths != length).any():
        raise RuntimeError(f"expected predictions of {length} tokens, got {lengths.tolist()}.")
    seconds = statistics.median(usage_of(lambda: run(source))[1].seconds for _ in range(count))
    return lengths[:, 0].sum() / seconds


def _actions():
    """Actions of trees among the ids: brackets last, and first pieces of words before them."""
    from tf_transformer.parsing.linearization import Actions, symbols
    from tf_transformer.text.special_ids import BLANK

    names = symbols(BRACKETS, "lexical_in_order")
    words = [f"{BLANK}{i}" for i in range(VOCABULARY - FIRST_ID - len(names))]
    return Actions.of(_Names([*map(str, range(FIRST_ID)), *words, *names]))


class _Names:
    """A vocabulary of these pieces."""

    def __init__(self, names: list[str]):
        self.pieces, self.vocabulary_size = names, len(names)
        self.is_symbol = lambda token: names[token].startswith("<")


if __name__ == "__main__":
    command_line.run(main)
