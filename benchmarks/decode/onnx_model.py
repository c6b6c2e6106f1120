"""This project's ONNX export, in onnxruntime, on strings."""

from benchmarks.decode.expected import read_expected
from benchmarks.decode.translator import build as build_translator
from benchmarks.decode.translator import translator_for
from benchmarks.decode.workload import Cell
from benchmarks.harness.shapes import THREADS
from benchmarks.harness.tasks import Setting, Task
from tf_transformer.config import Quantization
from tf_transformer.export import to_onnx


def build(setting: Setting, cells: list[Cell], quantization: Quantization) -> None:
    """Writes a folder, and the scores of the float32 model, for each beam and each length."""
    build_translator(setting, cells, export=False)
    for cell in sorted({cell._replace(batch=1) for cell in cells}):
        to_onnx.write(translator_for(setting, cell), _folder(setting, cell), quantization)


def task(setting: Setting, cell: Cell, rounds_inputs: bool = False) -> Task:
    """Calls `run_in_onnx.Model` with a list of strings.

    Args:
        setting: the shape and its folders.
        cell: what to translate.
        rounds_inputs: whether products with weights in int8 round their inputs, too.
    """
    from tf_transformer.export.run_in_onnx import Model

    sentences, check = read_expected(setting, cell)
    model = Model(_folder(setting, cell), THREADS, rounds_inputs)
    return Task(
        cell.batch * cell.target_tokens,
        lambda: model(sentences),
        lambda translations: check([translation.score for translation in translations]),
    )


def _folder(setting: Setting, cell: Cell):
    return setting.own / f"onnx-{cell.beam}-{cell.target_tokens}"
