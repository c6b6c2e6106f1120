"""Exports a run for TF Serving and others: python -m export --run_dir runs/x --to served/x/1."""

import os
import pathlib
import secrets
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from tf_transformer.config import DType, Quantization
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import PATTERN
from tf_transformer.machine.gpus import use_no_gpu
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.inference.predictor import Predictor
    from tf_transformer.inference.translator import Translator

# The check reads these beside inputs from the validation examples.
ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]


def main(
    run_dir: LocalPath,
    to: LocalPath,
    jit_compile: bool | Literal["auto"] = False,
    dtype: DType = "float32",
    format: Literal[
        "saved_model", "ctranslate2", "litert", "run", "marian", "marian_npz"
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
        format: kind of model. saved_model: for TensorFlow Serving. ctranslate2: for CTranslate2,
            without TensorFlow; export/run_in_ctranslate2.py runs it. litert: a folder for LiteRT,
            such as on phones, with its own program. run: a small folder with the averaged weights,
            for --run_dir of each command and for --train.init_from. marian: a folder that
            MarianMTModel and MarianTokenizer of Transformers load. marian_npz: a folder for marian-
            decoder.
        quantization: dtype of the stored weights, with --format ctranslate2 or litert.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    if format != "saved_model" and jit_compile:
        raise InputError("--jit_compile needs --format saved_model.")
    if format in ("ctranslate2", "litert") and dtype != "float32":
        raise InputError(f"--format {format} has no --dtype. Give --quantization.")
    if format in ("marian", "marian_npz") and dtype != "float32":
        raise InputError(f"--format {format} writes float32. Leave out --dtype.")
    if dtype == "int8" and (format != "saved_model" or jit_compile):
        raise InputError("--dtype int8 needs --format saved_model, without --jit_compile.")
    if format not in ("ctranslate2", "litert") and quantization != "float32":
        raise InputError(
            f"--quantization needs --format ctranslate2 or litert. For {format}, give --dtype."
        )
    run = Run.load(run_dir, **decode_options)  # before TensorFlow is imported
    if run.others and (jit_compile or format != "saved_model"):
        raise InputError(
            "an ensemble is exported with --format saved_model and without --jit_compile. Leave "
            "them out, or give one --run_dir."
        )
    final = pathlib.Path(to)
    if format == "saved_model" and PATTERN.intersection(to):
        raise InputError(
            f"--to {to}: TensorFlow reads *, ?, [, ] and \\ in the path of a SavedModel as a "
            "pattern, so no program could load the model. Give a path without them."
        )
    partial = _partial_folder(final)
    use_no_gpu()  # a training run may hold its memory
    try:
        if format == "ctranslate2":
            summary = _write_ctranslate2(run, partial, quantization)
        elif format == "litert":
            summary = _write_litert(run, partial, quantization)
        elif format == "run":
            from tf_transformer.export import to_run

            summary = to_run.write(run, partial, dtype)
        elif format == "saved_model":
            summary = _write_saved_model(run, partial, jit_compile, dtype)
        else:
            from tf_transformer.export import to_marian, to_marian_npz

            marian = to_marian if format == "marian" else to_marian_npz
            summary = marian.write(_translator(run, format), partial)
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


def _write_saved_model(
    run: Run, folder: pathlib.Path, jit_compile: bool | Literal["auto"], dtype: DType
) -> str:
    """Writes and checks a SavedModel; returns a summary."""
    from tf_transformer.export import check_int8, manifest, metadata, warm_up
    from tf_transformer.export.check import check, session
    from tf_transformer.inference.micro_batches import compiled_shapes
    from tf_transformer.inference.text_predictor import TextPredictor
    from tf_transformer.tasks import load_predictor

    loaded = load_predictor(run)
    sentences = run.folder.load_samples() + ODD_SENTENCES
    if jit_compile == "auto":
        from tf_transformer.export.compilation import is_faster_compiled

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


def stages(predictor: "Predictor", dtype: DType) -> "list[Predictor]":
    """The predictors to save and check in turn, from a float32 predictor. The last is the export.

    In another dtype, rounding changes some answers of a correct export, so the check tolerates
    differences. The same weights in float32 show first that the graph is correct.
    """
    return list(dict.fromkeys([predictor, predictor.with_dtype(dtype)]))


def _write_ctranslate2(run: Run, folder: pathlib.Path, quantization: Quantization) -> str:
    """Writes and checks a folder for CTranslate2; returns a summary."""
    from tf_transformer.export import check_ctranslate2, to_ctranslate2

    to_ctranslate2.require_package()
    translator = _translator(run, "ctranslate2")
    sentences = run.folder.load_samples() + ODD_SENTENCES
    # Rounded weights change scores. The same weights in float32 show first that the rest is right.
    for stored in dict.fromkeys(("float32", quantization)):
        shutil.rmtree(folder, ignore_errors=True)
        to_ctranslate2.write(translator, folder, stored)
        summary = check_ctranslate2.check(folder, translator, sentences, stored)
    notes = to_ctranslate2.notes(translator.config) + check_ctranslate2.notes(quantization)
    return "; ".join([summary, *notes])


def _write_litert(run: Run, folder: pathlib.Path, quantization: Quantization) -> str:
    """Writes and checks a folder for LiteRT; returns a summary."""
    from tf_transformer.export import check_litert, metadata, to_litert

    to_litert.require_package()
    translator = _translator(run, "litert")
    to_litert.write(translator, folder, quantization)
    to_litert.write_facts(folder, metadata.describe(run, translator))
    sentences = run.folder.load_samples() + ODD_SENTENCES
    summary = check_litert.check(folder, translator, sentences, quantization)
    size = (folder / "model.tflite").stat().st_size
    return f"{summary}; {size / 1e6:.1f} MB"


def _translator(run: Run, format: str) -> "Translator":
    """The translator of a run, for formats that hold nothing else."""
    from tf_transformer.inference.translator import Translator
    from tf_transformer.tasks import load_predictor

    translator = load_predictor(run)
    if not isinstance(translator, Translator):
        raise InputError(
            f"--format {format} needs a run whose task predicts with a Translator, but "
            f"{run.folder.path} predicts with a {type(translator).__name__}. Use --format "
            "saved_model."
        )
    return translator
