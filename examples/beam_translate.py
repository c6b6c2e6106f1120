"""Translates large text files on Apache Beam, with an exported model.

    python -m export --run_dir runs/x --to served/x/1
    python examples/beam_translate.py --saved_model served/x/1 --input in.txt --output out.txt

The program writes one line per line read, in the order of the input. It runs on this machine by
default. Beam's options select another runner; give them after the options of this program. Paths
may be on any file system that Beam supports. The program needs `pip install -e '.[beam]'`, the
SavedModel, and text_lines.py, which reads text and imports nothing. Workers get the functions of
text_lines.py from this machine.

Workers get the lines in blocks. Within a block, lines are sorted by length, so that the sentences
of a batch have similar lengths. Each line keeps its number as a key. Each block is written to a
file. At the end, the files are joined in order.
"""

import argparse
import itertools
import os
import pathlib
import runpy
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

try:
    import apache_beam as beam
    import tensorflow as tf
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.ml.inference.base import KeyedModelHandler, PredictionResult, RunInference
    from apache_beam.ml.inference.tensorflow_inference import TFModelHandlerTensor
    from apache_beam.options.pipeline_options import PipelineOptions
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
    sys.exit(f"error: {error.name} is not installed: pip install -e '.[beam]'")

_PACKAGE = pathlib.Path(__file__).parents[1] / "tf_transformer"
_TEXT = runpy.run_path(str(_PACKAGE / "files" / "text_lines.py"))
LINES_OF = _TEXT["lines_of"]
BATCH_SIZE = 64  # sentences in a batch

Key = tuple[int, int]  # block, and line within the block


class Translate(TFModelHandlerTensor):
    """Beam's handler for TensorFlow models, for a SavedModel that takes and returns strings.

    Beam's own `load_model` reads only Keras models.
    """

    def __init__(self, saved_model: str):
        super().__init__(saved_model, min_batch_size=BATCH_SIZE, max_batch_size=BATCH_SIZE)

    def load_model(self) -> Any:
        """Loads the SavedModel, once per worker."""
        import tensorflow_text  # noqa: F401  registers the SentencePiece ops

        return tf.saved_model.load(self._model_uri)

    def run_inference(
        self,
        batch: Sequence[tf.Tensor],
        model: Any,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[PredictionResult]:
        """Translates a batch of strings."""
        found = model.signatures["serving_default"](text=tf.stack(batch))
        for text, translation in zip(batch, found["translation"].numpy(), strict=True):
            yield PredictionResult(text, translation, self._model_uri)


def blocks(path: str, size: int) -> Iterator[tuple[int, list[str]]]:
    """Reads a text as numbered blocks of `size` lines; replaces broken UTF-8."""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        chunks = iter(lambda: file.read(2**13), b"")
        lines = LINES_OF(chunks, path)
        for number in itertools.count():
            block = list(itertools.islice(lines, size))
            if not block:
                return
            yield number, [line.decode("utf-8", "replace") for line in block]


def keyed_by_length(block: tuple[int, list[str]]) -> Iterator[tuple[Key, tf.Tensor]]:
    """The lines of a block with their keys, longest first."""
    number, lines = block
    for place in sorted(range(len(lines)), key=lambda place: -len(lines[place])):
        yield (number, place), tf.constant(lines[place])


def by_block(found: tuple[Key, PredictionResult]) -> tuple[int, tuple[int, bytes]]:
    """The key and result of a line, as (block, (line, translation))."""
    (number, place), result = found
    return number, (place, result.inference.replace(b"\n", b" "))


def write_block(block: tuple[int, Iterable[tuple[int, bytes]]], folder: str) -> str:
    """Writes the translations of a block in the order of its lines; returns the path."""
    number, translations = block
    path = FileSystems.join(folder, f"{number:09d}")
    with FileSystems.create(path) as file:
        file.write(b"".join(text + b"\n" for _, text in sorted(translations)))
    return path


def join_blocks(folder: str, output: str) -> None:
    """Joins the files of all blocks, and removes them."""
    [matched] = FileSystems.match([FileSystems.join(folder, "*")])
    paths = sorted(metadata.path for metadata in matched.metadata_list)
    with FileSystems.create(output) as whole:
        for path in paths:
            with FileSystems.open(path) as block:
                whole.write(block.read())
    FileSystems.delete(paths)
    if FileSystems.exists(folder):  # object stores have no empty folders
        FileSystems.delete([folder])


def main() -> None:
    """Reads options and runs the pipeline."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--saved_model", required=True, help="folder of the exported model")
    parser.add_argument("--input", required=True, help="text file, plain or compressed")
    parser.add_argument("--output", required=True, help="file for the translations")
    parser.add_argument("--block", type=int, default=2000, help="lines per block")
    options, beam_options = parser.parse_known_args()
    for path in (options.saved_model, options.input):
        if not FileSystems.exists(path):
            parser.error(f"{path} does not exist. Check the path.")
    # A new folder, so that no blocks of an interrupted attempt are joined.
    folder = f"{options.output}.blocks-{uuid.uuid4().hex[:8]}"
    FileSystems.mkdirs(folder)
    with beam.Pipeline(options=PipelineOptions(beam_options)) as pipeline:
        _ = (
            pipeline
            | beam.Create([options.input])
            | "Read" >> beam.FlatMap(blocks, options.block)
            | "Distribute" >> beam.Reshuffle()
            | "Sort" >> beam.FlatMap(keyed_by_length)
            | RunInference(KeyedModelHandler(Translate(options.saved_model)))
            | beam.Map(by_block)
            | beam.GroupByKey()
            | "Write" >> beam.Map(write_block, folder)
        )
    join_blocks(folder, options.output)


if __name__ == "__main__":
    main()
