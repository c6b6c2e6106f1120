"""Links the words of parallel text: tf-transformer align --source a.en --target a.de."""

import sys
from collections.abc import Sequence
from typing import Any

from tf_transformer.commands import command_line
from tf_transformer.config import DType
from tf_transformer.data.eflomal_links import eflomal_links
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_free
from tf_transformer.files.streaming import WINDOW, Output, Progress, Stream
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run
from tf_transformer.text.word_alignment import Link, Unit, to_line


def main(
    source: LocalPath,
    target: LocalPath,
    output: LocalPath = "",
    run_dir: LocalPath = "",
    unit: Unit = "words",
    resume: bool = False,
    overwrite: bool = False,
    window: int = WINDOW,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Writes the word alignments of parallel text, a line for each pair.

    A line has links `s-t` between source word s and target word t of `str.split()`, from 0 (the
    Pharaoh format). A training reads them as data.train_alignments. Without --run_dir, eflomal
    learns the links from the text itself, all lines at once (pip install 'tf_transformer[align]').

    Args:
        source: file of sentences, plain or compressed.
        target: file of their translations.
        output: file for the links; empty: stdout.
        run_dir: folder of a translator whose attention links the words; empty: eflomal.
        unit: links between words, or between pieces of the translator's tokenizer.
        resume: continue the output of an interrupted run. eflomal starts again.
        overwrite: replace an existing output.
        window: most lines that are read and aligned together by a translator.
        dtype: dtype of weights and computation of a translator.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    outputs = [Output(output, lambda _, links: [to_line(links)])]
    if not run_dir:
        if unit != "words" or any(value is not None for value in decode_options.values()):
            raise InputError("--unit and the options of a search need --run_dir, a translator.")
        stream = Stream([source, target], outputs, sys.maxsize, resume, overwrite)
        stream.depends_on({"--run_dir": ""}, {})
        stream.run(lambda sources, targets, progress: eflomal_links(sources, targets))
        return
    run = Run.load(run_dir, **decode_options)
    if run.config.task.name != "translation":
        raise InputError(f"expected a run of translation, got one of {run.config.task.name}.")
    require_free(list(filter(None, [output])), run.files(), overwrite)
    stream = Stream([source, target], outputs, window, resume, overwrite)
    stream.depends_on(run.search_options() | {"--unit": unit, "--dtype": dtype}, run.identities())

    import_tensorflow()
    from tf_transformer.tasks import load_predictor

    translator: Any = load_predictor(run, dtype)

    def step(
        sources: Sequence[str], targets: Sequence[str], progress: Progress
    ) -> list[list[Link]]:
        return [alignment.links(unit) for alignment in translator.align(sources, targets)]

    stream.run(step)


if __name__ == "__main__":
    command_line.run(main)
