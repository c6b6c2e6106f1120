"""Divides parallel text into training, validation and test files.

    python -m benchmarks.translations.split_text --sources all.en,more.en --targets all.de,more.de \
        --to build/text

Validation and test sentences come from the first pair of files: distinct sources, each with its
first translation. A pair is left out of the training text if its source or its target equals a
validation or test sentence, apart from case, punctuation and spaces.
"""

import itertools
import pathlib
import random
from collections.abc import Iterable

from tf_transformer.commands import command_line
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.readers.text import stream_files
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.writing import write_whole

Pair = tuple[str, ...]


def main(
    sources: LocalPath,
    targets: LocalPath,
    to: LocalPath,
    valid: int = 1000,
    test: int = 2000,
    seed: int = 1,
) -> None:
    """Writes train, valid and test with the endings of the first files, and prints their sizes.

    Args:
        sources: files of sentences, with commas between them.
        targets: files of their translations.
        to: folder for the files.
        valid: validation sentences wanted.
        test: test sentences wanted.
        seed: of the choice.

    Raises:
        InputError: when the numbers of files differ, or the text is too small.
    """
    names = [sources.split(","), targets.split(",")]
    if len(names[0]) != len(names[1]):
        raise InputError(f"expected a target for each source, got {len(names[1])} files.")
    streams = [stream_files(*paths) for paths in zip(*names, strict=True)]
    held_out, train = split(streams, valid + test, seed)
    parts = {"train": train, "valid": held_out[:valid], "test": held_out[valid:]}
    pathlib.Path(to).mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        for file, texts in zip(
            (files[0] for files in names), zip(*pairs, strict=True), strict=True
        ):
            path = pathlib.Path(to, part + pathlib.Path(file).suffix)
            write_whole(path, "".join(f"{text}\n" for text in texts))
        print(f"{part}: {len(pairs):,} pairs")


def split(streams: list[ExampleStream], count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Held-out pairs of the first text, and the pairs of all texts that are unlike them."""
    _, examples = streams[0].hold_out(count, seed)
    firsts: dict[str, Pair] = {}
    for pair in zip(*(examples[name] for name in examples.fields), strict=True):
        firsts.setdefault(pair[0], pair)
    held_out = list(firsts.values())
    random.Random(seed).shuffle(held_out)  # a text may be sorted by length
    known = {essence(text) for pair in held_out for text in pair}
    every: Iterable[Pair] = itertools.chain.from_iterable(streams)
    train = [pair for pair in every if not known.intersection(map(essence, pair))]
    if not train or len(held_out) < count:
        raise InputError(f"expected a text of more than {10 * count:,} distinct sentences.")
    return held_out, train


def essence(text: str) -> str:
    """The letters and digits of a text, in lower case.

    Example:
        >>> essence("Tom's here!") == essence("toms here")
        True
    """
    return "".join(filter(str.isalnum, text.casefold()))


if __name__ == "__main__":
    command_line.run(main)
