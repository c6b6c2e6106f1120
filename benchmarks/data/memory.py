"""Measures the memory that a training run needs for its data, by the number of pairs.

    python -m benchmarks.data.memory --pairs '[100000, 1000000]'

Each stream of pairs has its own process, which does the work of a training run without its updates.
It holds out validation pairs, tokenises, counts batches and padding, and reads an epoch. A row has
the peak memory of the process, with mapped files, and the peak before the tokenisation. The latter
comes from TensorFlow and a tokenizer that is learned from 100,000 lines. Tokenised files go to the
temporary folder; 10 million pairs take less than 1 GB.
"""

import itertools
import pathlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import DataConfig
from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.data.readers.generated import number_in_words
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

_DRAWN_AT_ONCE = 10_000  # pairs


def main(pairs: list[int] | None = None, output: str = "") -> None:
    """Prints a table with a row for each number of pairs.

    Args:
        pairs: numbers of pairs; null: 100,000, 1 million and 10 million.
        output: result file to write, like benchmarks/results/data_memory.json.
    """
    counts = tqdm(pairs or [100_000, 1_000_000, 10_000_000], unit="stream")
    rows = [call("benchmarks.data.memory:measured", pairs=count) for count in counts]
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "sentencepiece", "numpy"))


def measured(pairs: int) -> dict[str, Any]:
    """A row of the table. Call it in a new process."""
    from benchmarks.data.pipeline import sampler_of, store_of, target_tokens_of_an_epoch

    data = DataConfig()
    text, valid = generated_numbers(pairs).hold_out(data.held_out, seed=1)
    some = itertools.islice(itertools.chain.from_iterable(text), 100_000)
    codec = Codec(Tokenizer.train(some, data.vocabulary_size))
    before = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        store, tokenisation = usage_of(lambda: store_of(text, codec, data, folder))
        size = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*.npy"))
        sampler = sampler_of(store, data, codec)
        tokens, epoch = usage_of(lambda: target_tokens_of_an_epoch(sampler, 1))
    if store.num_examples + len(valid) != pairs:
        raise RuntimeError(f"expected {pairs:,} pairs, got {store.num_examples + len(valid):,}.")
    return {
        "pairs": pairs,
        "shards": store.num_shards(),
        "files_mb": round(size / 2**20),
        "tokenisation_seconds": round(tokenisation.seconds),
        "batches": len(sampler),
        "padding": round(sampler.padding_fraction(), 4),
        "target_tokens_per_second": round(tokens / epoch.seconds),
        "minor_faults": tokenisation.minor_faults + epoch.minor_faults,
        "system_seconds": round(tokenisation.system_seconds + epoch.system_seconds, 1),
        "peak_mb_before": round(before),
        "peak_mb": round(peak_megabytes()),
        "added_mb": round(peak_megabytes() - before),
    }


def generated_numbers(count: int) -> ExampleStream:
    """`count` pairs of 1 to 6 numbers below 1,000 in words, English to German, without a store.

    The words come from a table; a million pairs take a few seconds. The generated corpus takes a
    minute for a million pairs, and has at most 365,245 pairs.
    """
    english, german = (
        [number_in_words(number, language) for number in range(1000)] for language in ("en", "de")
    )

    def start(_: Counter[str]) -> Iterator[Texts]:
        rng = np.random.default_rng(1)
        for first in range(0, count, _DRAWN_AT_ONCE):
            lengths = rng.integers(1, 7, min(_DRAWN_AT_ONCE, count - first))
            drawn = iter(rng.integers(0, 1000, lengths.sum()).tolist())
            for length in lengths.tolist():
                numbers = list(itertools.islice(drawn, length))
                yield (
                    " ".join([english[n] for n in numbers]),
                    " ".join([german[n] for n in numbers]),
                )

    return ExampleStream(("source", "target"), start, lambda: f"generated numbers {count}")


if __name__ == "__main__":
    command_line.run(main)
