"""Measures the speed from text to ids, and from ids to batches, without a model.

    python -m benchmarks.data.speed --source train.en --target train.de --data.vocabulary_size 6000

Without files, the text is the generated corpus. `--data.augment.upper 0.05` and the like measure
changes of the text, too. A training run at N target tokens per second never waits for data if N is
well below the speed of the batches.
"""

import functools
import itertools
import statistics
import tempfile

from benchmarks.data.pipeline import sampler_of, store_of, target_tokens_of_an_epoch
from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import DataConfig
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.readers.generated import generate, training_pairs
from tf_transformer.data.readers.text import stream_files
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer


def main(
    data: DataConfig = DataConfig(),
    source: str = "",
    target: str = "",
    epochs: int = 5,
    output: str = "",
) -> None:
    """Prints pairs tokenised per second, target tokens per second of batches, and padding.

    Args:
        data: options of lengths, vocabulary and batches.
        source: file of source sentences; empty: the generated corpus.
        target: file of translations; line n translates line n of source.
        epochs: number of times that all batches are read.
        output: result file to write, like benchmarks/results/data_speed.json.
    """
    text = text_of(data, source, target)
    lines = itertools.chain.from_iterable(text)
    codec = Codec(Tokenizer.train(lines, data.vocabulary_size, data.normalization))
    with tempfile.TemporaryDirectory() as folder:
        store, tokenisation = usage_of(lambda: store_of(text, codec, data, folder))
        sampler = sampler_of(store, data, codec)
        rows = []
        for epoch in range(epochs):
            read = functools.partial(target_tokens_of_an_epoch, sampler, epoch)
            tokens, usage = usage_of(read)
            speed = {"epoch": epoch, "target_tokens_per_second": tokens / usage.seconds}
            rows.append(speed | usage._asdict())
    summary = {
        "pairs": store.num_examples,
        "pairs_per_second": store.num_examples / tokenisation.seconds,
        "padding": sampler.padding_fraction(),
        "target_tokens_per_second": statistics.median(
            row["target_tokens_per_second"] for row in rows
        ),
    }
    print(
        f"{summary['pairs']:,} pairs tokenised, {summary['pairs_per_second']:,.0f} per second; "
        f"{len(sampler):,} batches, {summary['padding']:.2%} padding; median "
        f"{summary['target_tokens_per_second']:,.0f} target tokens/s\n"
    )
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "sentencepiece", "numpy"), summary=summary)


def text_of(data: DataConfig, source: str, target: str) -> ExampleStream:
    """The pairs of two files, or the generated corpus."""
    if source:
        return stream_files(source, target)
    languages = data.source_language, data.target_language
    return generate(training_pairs(data), *languages, seed=0).stream()


if __name__ == "__main__":
    command_line.run(main)
