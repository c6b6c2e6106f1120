"""The batches of a text as in training: sorted by length, padded, with several shapes."""

import itertools
import pathlib
import tempfile

from benchmarks.data.pipeline import sampler_of, store_of
from benchmarks.harness.shapes import SHAPES
from benchmarks.train.workload import TEXT_BATCHES, Cell, write_batches
from tf_transformer.config import DataConfig
from tf_transformer.data.readers.text import stream_files
from tf_transformer.text.tokenizer import Tokenizer


def write(folder: str, shape: str, source: str, target: str) -> Cell:
    """Writes the first batches of a training run, for all systems that train a shape.

    Args:
        folder: for the files of all systems.
        shape: name of a shape; its vocabulary is the largest that is learned.
        source: file of sentences.
        target: file of their translations.

    Returns:
        the cell that has these batches.
    """
    text, data = stream_files(source, target), DataConfig()
    lines = itertools.chain.from_iterable(text)
    tokenizer = Tokenizer.train(lines, SHAPES[shape].vocabulary_size, data.normalization)
    with tempfile.TemporaryDirectory() as store:
        sampler = sampler_of(store_of(text, tokenizer, data, store), data)
        found = list(itertools.islice(sampler.batches(0), TEXT_BATCHES))
    made = [(batch["source"], batch["target"]) for batch in found]
    write_batches(pathlib.Path(folder, shape), made)
    return Cell(0, max(ids.shape[1] for pair in made for ids in pair))
