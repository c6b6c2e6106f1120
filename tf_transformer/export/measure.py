"""Measures the SavedModel of a run on a test set: BLEU, chrF, speed and size.

The program of this process is this module, because a process sets TensorFlow's threads once.
"""

import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer import tasks
from tf_transformer.inference.saved_translator import SavedTranslator
from tf_transformer.machine.gpus import use_no_gpu
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.keras_settings import for_commands
from tf_transformer.machine.programs import run_program
from tf_transformer.run.run import Run

LONGEST = 24 * 3600  # seconds


class Measurement(NamedTuple):
    """The result for a run.

    Attributes:
        search: "greedy", or the beam of its search.
        bleu: BLEU of the SavedModel's translations, 0 to 100.
        chrf: chrF, 0 to 100.
        sentences_per_second: of the second pass over the test set on CPUs, in batches of similar
            length.
        megabytes: size of the SavedModel, 10⁶ bytes.
    """

    search: str
    bleu: float
    chrf: float
    sentences_per_second: float
    megabytes: float


def measure(run_dir: str, texts: Sequence[str], references: Sequence[str]) -> Measurement:
    """Exports a run to a temporary folder, and translates texts with the export in a new process.

    The run may be an ensemble. It translates with the search of its configuration. All pairs are
    read: give texts that the run has not learned.
    """
    work = {"run_dir": run_dir, "texts": texts, "references": references}
    return Measurement(**run_program(__name__, work, LONGEST))


def _measured(run_dir: str, texts: Sequence[str], references: Sequence[str]) -> Measurement:
    run = Run.load(run_dir)
    search = run.config.decode
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    rows = [order[i : i + search.batch_size] for i in range(0, len(order), search.batch_size)]
    with tempfile.TemporaryDirectory() as folder:
        tasks.load_predictor(run).save(folder)
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*"))
        translate = SavedTranslator(folder)
        for _ in range(2):
            start, translations = time.perf_counter(), [""] * len(texts)
            for batch in rows:
                predictions = translate([texts[i] for i in batch])
                for i, prediction in zip(batch, predictions, strict=True):
                    translations[i] = prediction.text
            seconds = time.perf_counter() - start
    scores = tasks.for_run(run.config).score(texts, translations, [references])
    kind = "sampling" if search.sampling else f"beam {search.beam_size}"
    kind = "greedy" if kind == "beam 1" else kind
    return Measurement(kind, scores["bleu"], scores["chrf"], len(texts) / seconds, size / 1e6)


if __name__ == "__main__":
    keep_freed_memory()
    for_commands()
    use_no_gpu()  # the process that calls this one may hold its memory
    print(json.dumps(_measured(**json.load(sys.stdin))._asdict()))
