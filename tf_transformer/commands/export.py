"""Exports a run for TF Serving and others: python -m export --run_dir runs/x --to served/x/1."""

import os
import pathlib
import secrets
import shutil
from typing import Any, Literal

from tf_transformer.config import DType, Quantization
from tf_transformer.errors import InputError
from tf_transformer.export.formats import (
    FORMATS,
    Compiled,
    Options,
    require_one_run,
    require_supported,
)
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import PATTERN
from tf_transformer.machine.gpus import use_no_gpu
from tf_transformer.run.run import Run


def main(
    run_dir: LocalPath,
    to: LocalPath,
    jit_compile: Compiled = False,
    dtype: DType = "float32",
    format: Literal[
        "saved_model", "ctranslate2", "litert", "onnx", "run", "marian", "marian_npz"
    ] = "saved_model",
    quantization: Quantization = "float32",
    **decode_options: Any,
) -> None:
    """Writes and checks a SavedModel that takes and returns raw strings.

    A fresh process loads the new model into a session, as a server does. The answers of all
    signatures must equal the answers of the run. The model then gets its final name.

    Args:
        run_dir: folder of the run; a,b,c for an ensemble of three runs with one target vocabulary.
        to: folder to write. For TF Serving, its name is the number of a version: served/mine/1.
        jit_compile: compile the search with XLA: faster for few sentences and small models. A
            stock TF Serving then needs --xla_cpu_compilation_enabled=true, and compiles for all
            batch sizes while it loads the model. If it forms batches, max_batch_size must be 32 or
            more. auto: compile if this is faster for sentences of the run on this machine.
        dtype: dtype of weights and computation.
        format: kind of model. saved_model: for TensorFlow Serving. ctranslate2, litert, onnx:
            folders for CTranslate2, for LiteRT on phones, and for onnxruntime, each with its own
            program. run: a small folder with the averaged weights, for --run_dir of each command
            and for --train.init_from. marian: a folder that MarianMTModel and MarianTokenizer of
            Transformers load. marian_npz: a folder for marian-decoder.
        quantization: dtype of the stored weights, with --format ctranslate2, litert or onnx.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    options = Options(dtype, quantization, jit_compile)
    require_supported(format, options)
    run = Run.load(run_dir, **decode_options)  # before TensorFlow is imported
    if run.others:
        require_one_run(format, options)
    final = pathlib.Path(to)
    if format == "saved_model" and PATTERN.intersection(to):
        raise InputError(
            f"--to {to}: TensorFlow reads *, ?, [, ] and \\ in the path of a SavedModel as a "
            "pattern, so no program could load the model. Give a path without them."
        )
    partial = _partial_folder(final)
    use_no_gpu()  # a training run may hold its memory
    try:
        summary = FORMATS[format].write(run, partial, options)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"exported {final}: {summary}")


def _partial_folder(final: pathlib.Path) -> pathlib.Path:
    """Makes a folder for the model beside its final place."""
    # The name is no number, so a server that watches the parent folder ignores it.
    partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}.partial")
    try:
        if os.path.lexists(final):
            new = final / "1"
            if final.name.isdigit():
                versions = [int(p.name) for p in final.parent.iterdir() if p.name.isdigit()]
                new = final.with_name(str(max(versions) + 1))
            raise InputError(f"{final} exists; give --to a new version, like {new}.")
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"--to {final} cannot be made: {error}. Give a folder that can be written."
        ) from error
    return partial
