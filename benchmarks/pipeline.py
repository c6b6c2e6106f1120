"""Whether data keeps up with training: python benchmarks/pipeline.py [--source F --target F].

Prints how fast text is tokenised and how fast batches come, both without a model, and the share of
padding. With --memory, how much memory streams of so many made-up pairs take instead.
README.md beside this file says how to read it.
"""

import functools
import itertools
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.commands import command_line
from tf_transformer.config import DataConfig
from tf_transformer.data.batching import BatchPlan
from tf_transformer.data.corpus import Pair, PairStream, stream_files
from tf_transformer.data.generated import generate, number_in_words
from tf_transformer.data.store import TokenStore, tokenised
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training.strategy import share_out

_DRAWN_AT_ONCE = 10_000  # pairs


def main(
    data: DataConfig = DataConfig(),
    source: str = "",
    target: str = "",
    passes: int = 5,
    memory: list[int] | None = None,
    count: int = 0,
) -> None:
    """Prints speeds and padding of a text, or the memory of streams.

    Args:
        data: lengths, vocabulary and batches.
        source: source side of the text; the generated corpus when not given.
        target: its translation, line by line.
        passes: epochs to time.
        memory: measure the memory of streams of so many pairs, each in a process of its own.
        count: measure one such stream, in this process.
    """
    if count:
        print(memory_of_a_stream(count, data))
    elif memory:
        report_memory(memory)
    else:
        report_speed(data, source, target, passes)


# --- speed -----------------------------------------------------------------------------------


def report_speed(data: DataConfig, source: str, target: str, passes: int) -> None:
    """Prints how fast text becomes ids, and ids become batches."""
    if source:
        text = stream_files(source, target)
    else:
        languages = data.source_language, data.target_language
        text = generate(data.generated_pairs, *languages, seed=0).stream()
    lines = itertools.chain.from_iterable(text)
    tokenizer = Tokenizer.train(lines, data.vocabulary_size, data.normalization)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = store_of(text, tokenizer, data, folder)
        seconds = time.perf_counter() - start
        plan = plan_of(store, data)
        print(f"tokenising: {store.num_pairs / seconds:,.0f} pairs/s, {store.num_pairs:,} pairs")
        print(f"batches: {len(plan):,} a pass, {plan.padding_share():.2%} padding")
        speeds = [target_tokens_per_second(plan, number) for number in range(passes)]
    listed = ", ".join(f"{speed:,.0f}" for speed in speeds)
    print(f"target tokens/s of each pass: {listed}; median {np.median(speeds):,.0f}")


def target_tokens_per_second(plan: BatchPlan, epoch: int) -> float:
    """The speed at which a pass comes out of what a training reads; padding does not count."""
    start = time.perf_counter()
    tokens = 0
    from_here = functools.partial(plan.batches, start=epoch * len(plan))
    with share_out(tf.distribute.get_strategy(), from_here) as batches:
        for ((_, labels),) in itertools.islice(batches, len(plan)):
            tokens += np.count_nonzero(labels)
    return tokens / (time.perf_counter() - start)


def store_of(text: PairStream, tokenizer: Tokenizer, data: DataConfig, folder: str) -> TokenStore:
    """The whole store, as a training makes it."""
    store = tokenised(text, tokenizer, data.max_length, data.shard_pairs, folder)
    store.num_shards()  # waits for all
    return store


def plan_of(store: TokenStore, data: DataConfig) -> BatchPlan:
    """The plan of a training."""
    return BatchPlan(store, data.batch_tokens, data.bucket_width, seed=1)


# --- memory ----------------------------------------------------------------------------------


def made_up(count: int) -> PairStream:
    """`count` pairs of 1 to 6 numbers below a thousand in words, English to German, never stored.

    Made of a table, at a million pairs in a few seconds, where the generated corpus takes a minute
    and ends after 365,245.
    """
    english, german = (
        [number_in_words(number, language) for number in range(1000)] for language in ("en", "de")
    )

    def start(_: Counter[str]) -> Iterator[Pair]:
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

    return PairStream(start, f"made up {count}")


def memory_of_a_stream(count: int, data: DataConfig) -> str:
    """All that a training does before and beside its updates; a row of the table of memory."""
    text, valid = made_up(count).hold_out(data.held_out, seed=1)
    few = itertools.islice(itertools.chain.from_iterable(text), 100_000)
    tokenizer = Tokenizer.train(few, data.vocabulary_size)
    before = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = store_of(text, tokenizer, data, folder)
        tokenised_in = time.perf_counter() - start
        size = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*.npy")) / 2**20
        plan = plan_of(store, data)
        padding, batches = plan.padding_share(), len(plan)
        speed = target_tokens_per_second(plan, 1)
    row = [f"{count:,}", f"{store.num_shards()}", f"{size:,.0f}", f"{tokenised_in:,.0f}"]
    row += [f"{batches:,}", f"{padding:.2%}", f"{speed:,.0f}"]
    row += [f"{before:,.0f}", f"{peak_megabytes():,.0f}"]
    assert store.num_pairs + len(valid) == count
    return f"| {' | '.join(row)} |"


def peak_megabytes() -> float:
    """The most memory this process has had so far, pages of mapped files among it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def report_memory(counts: list[int]) -> None:
    """Prints the table of memory, a process a row."""
    columns = ["pairs", "shards", "files, MB", "tokenised in, s", "batches", "padding"]
    columns += ["target tokens/s", "peak MB before", "peak MB"]
    print(f"| {' | '.join(columns)} |\n|{'---:|' * len(columns)}", flush=True)
    for count in counts:
        program: list[Any] = [sys.executable, __file__, f"--count={count}"]
        result = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
        print(result.stdout.strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    command_line.run(main)
