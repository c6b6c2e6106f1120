"""Measures the preparation of a corpus: in one process, and on Beam's direct runner.

    python -m benchmarks.data.prepare --pairs '[10000, 100000, 1000000]'

Both read two text files, leave out the pairs that `--data.clean recommended` names, learn a
vocabulary of 8,000 pieces, and write the ids in shards. One process does this at the start of a
training run. Each row has a process of its own. The pairs are generated numbers in words.
"""

import dataclasses
import pathlib
import tempfile
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.data.memory import generated_numbers
from benchmarks.harness import results
from benchmarks.harness.processes import call
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from tf_transformer.commands import command_line
from tf_transformer.config import Corpus, DataConfig

BILLION = 1_000_000_000
HOW = {"process": "one process", "beam": "Beam's direct runner"}


def main(pairs: list[int] | None = None, output: str = "") -> None:
    """Prints a table with two rows for each number of pairs.

    Args:
        pairs: numbers of pairs; null: 10,000, 100,000 and 1 million.
        output: result file to write, like benchmarks/results/data_prepare.json.
    """
    counts = pairs or [10_000, 100_000, 1_000_000]
    cases = [(count, how) for count in counts for how in HOW]
    rows = [
        call("benchmarks.data.prepare:measured", pairs=count, how=how)
        for count, how in tqdm(cases, unit="row")
    ]
    hours = {HOW[how]: _hours_of_a_billion(rows, HOW[how]) for how in HOW}
    print(of_rows(rows), f"hours of a billion pairs, by a line through the rows: {hours}", sep="\n")
    summary = {"hours_of_a_billion": hours}
    results.save(output, rows, ("apache-beam", "sentencepiece", "numpy"), summary=summary)


def measured(pairs: int, how: str) -> dict[str, Any]:
    """A row of the table. Call it in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        data = _written(pathlib.Path(folder), pairs)
        prepare = {"process": _in_one_process, "beam": _on_beam}[how]
        _, usage = usage_of(lambda: prepare(data, f"{folder}/prepared"))
    return {
        "pairs": pairs,
        "how": HOW[how],
        "seconds": round(usage.seconds, 1),
        "pairs_per_second": round(pairs / usage.seconds),
        "peak_mb": round(peak_megabytes()),
    }


def _written(folder: pathlib.Path, pairs: int) -> DataConfig:
    """The options for two files with generated pairs."""
    files = [folder / "a.en", folder / "a.de"]
    with files[0].open("w") as source, files[1].open("w") as target:
        for english, german in generated_numbers(pairs):
            source.write(f"{english}\n")
            target.write(f"{german}\n")
    corpus = Corpus(*map(str, files))
    return DataConfig((corpus,), (dataclasses.replace(corpus, limit=100),), clean="recommended")


def _in_one_process(data: DataConfig, folder: str) -> None:
    from tf_transformer.config.data import SHARD_PAIRS
    from tf_transformer.data import corpora
    from tf_transformer.data.prepared_shards import encoder_of
    from tf_transformer.data.readers.text import FIELDS
    from tf_transformer.data.store import find_or_make
    from tf_transformer.data.vocabulary import learned_codec

    text = corpora.stream(data.corpora, FIELDS, data, data.clean)
    pathlib.Path(folder).mkdir()
    codec = learned_codec(text, data, FIELDS[0])
    codec.save(folder)
    encoder = encoder_of(folder, codec.identity)
    store = find_or_make(text, encoder, data.max_length, SHARD_PAIRS, folder, keep=True)
    store.num_shards()  # returns when all shards are there


def _on_beam(data: DataConfig, folder: str) -> None:
    from tf_transformer.commands import prepare

    prepare.main(to=folder, data=data)


def _hours_of_a_billion(rows: list[dict[str, Any]], how: str) -> float:
    """By a line through the rows: a start, and a time for each pair."""
    own = [row for row in rows if row["how"] == how]
    pairs, seconds = ([row[name] for row in own] for name in ("pairs", "seconds"))
    per_pair, start = np.polyfit(pairs, seconds, 1) if len(own) > 1 else (seconds[0] / pairs[0], 0)
    return round(float(start + per_pair * BILLION) / 3600, 1)


if __name__ == "__main__":
    command_line.run(main)
