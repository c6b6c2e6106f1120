"""This project's folder for LiteRT, run by its own program: strings in and out, one at a time."""

import pathlib
from dataclasses import replace

from benchmarks.decode import translator
from benchmarks.decode.expected import read_expected, saved_model_path
from benchmarks.decode.workload import SOURCE_TOKENS, Cell
from benchmarks.harness.shapes import THREADS
from benchmarks.harness.tasks import Setting, Task
from tf_transformer.config import Quantization
from tf_transformer.export import to_litert
from tf_transformer.export.run_in_litert import Model
from tf_transformer.inference.translator import Translator


def build(setting: Setting, cells: list[Cell], weights: Quantization = "float32") -> None:
    """Writes a folder and the expected scores for each beam and each length.

    `weights` is the dtype of the stored weights.
    """
    translator.build(setting, cells, export=False)
    for cell in {_folder(setting, cell): cell for cell in cells}.values():
        made = translator.translator_for(setting, cell)
        search = replace(made.config, max_source_length=SOURCE_TOKENS)
        to_litert.write(Translator(made.model, made.codec, search), _folder(setting, cell), weights)


def task(setting: Setting, cell: Cell) -> Task:
    """Calls `Model` with a list of strings."""
    sentences, check = read_expected(setting, cell)
    model = Model(_folder(setting, cell), THREADS)
    return Task(
        cell.batch * cell.target_tokens,
        lambda: model(sentences),
        lambda found: check([translation.score for translation in found]),
    )


def _folder(setting: Setting, cell: Cell) -> pathlib.Path:
    """The folder of a system for a beam and a length."""
    return saved_model_path(setting, cell).with_suffix(".litert")
