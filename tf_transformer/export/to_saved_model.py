"""Writes a run as a SavedModel for TensorFlow Serving, and checks it in a session."""

import pathlib
import shutil
from dataclasses import asdict
from typing import Literal

from tf_transformer import tasks
from tf_transformer.config import DType
from tf_transformer.export import check_int8, manifest, metadata, warm_up
from tf_transformer.export.check import check, sentences_for, session
from tf_transformer.export.compilation import is_faster_compiled
from tf_transformer.inference.micro_batches import compiled_shapes
from tf_transformer.inference.predictor import Predictor
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.run.run import Run


def write(run: Run, folder: pathlib.Path, jit_compile: bool | Literal["auto"], dtype: DType) -> str:
    """Writes and checks a SavedModel; returns a summary."""
    loaded = tasks.load_predictor(run)
    sentences = sentences_for(run, loaded)
    if jit_compile == "auto":
        jit_compile = is_faster_compiled(run, dtype)
    cases = []
    for predictor in stages(loaded, dtype):
        shutil.rmtree(folder, ignore_errors=True)
        with session(folder) as process:
            predictor.save(folder, jit_compile=jit_compile)
            requirements = manifest.check(folder, jit_compile)
            cases.append(check(process, folder, predictor, sentences))
    agreement = ""
    if dtype == "int8" and isinstance(predictor, TextPredictor):
        in_float32, in_int8 = cases
        agreement = f"; {check_int8.check(in_float32, in_int8, predictor)}"
    shapes = compiled_shapes(predictor.max_source_length) if jit_compile else warm_up.SHAPES
    warm_up.write(folder, warm_up.batches(shapes, predictor.codec["source"].encode))
    facts = metadata.describe(run, predictor)
    metadata.write(folder, facts | {"requires": asdict(requirements)})
    rows = max(rows for rows, _ in shapes)
    option = f" with --xla_cpu_compilation_enabled=true; max_batch_size: {rows} or more"
    return (
        f"{len(sentences)} sentences checked in a session; runs in TF Serving "
        f"{requirements.lowest_server} and later{option if jit_compile else ''}{agreement}"
    )


def stages(predictor: Predictor, dtype: DType) -> list[Predictor]:
    """The predictors to save and check in turn, from a float32 predictor. The last is the export.

    In another dtype, rounding changes some answers of a correct export, so the check tolerates
    differences. The same weights in float32 show first that the graph is correct.
    """
    return list(dict.fromkeys([predictor, predictor.with_dtype(dtype)]))
