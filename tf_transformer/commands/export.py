"""Exports a run for TF Serving: python -m export --run_dir runs/x --to served/x/1.

With --format ctranslate2, for CTranslate2.
"""

import pathlib
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from tf_transformer.config import DType, Quantization
from tf_transformer.errors import InputError
from tf_transformer.run_folder import RunFolder

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]


def main(
    run_dir: str,
    to: str,
    jit_compile: bool = False,
    dtype: DType = "float32",
    format: Literal["saved_model", "ctranslate2"] = "saved_model",
    quantization: Quantization = "float32",
    **decode_options: Any,
) -> None:
    """Writes a SavedModel that takes and gives raw strings, and checks it before it counts.

    The new model is loaded into a session in a fresh process, as a server does, and must
    answer in all signatures as the run does. Only then it gets its final name.

    Args:
        run_dir: the run's folder.
        to: the folder to make, for TF Serving .../<model>/<version>.
        jit_compile: let XLA compile the search: faster for few sentences and small models. A
            stock TF Serving needs --xla_cpu_compilation_enabled=true then, and compiles for all
            sizes of batches while it loads.
        dtype: of weights and computation.
        format: saved_model, or ctranslate2: a folder for CTranslate2, which needs no TensorFlow.
            export/run_in_ctranslate2.py runs it.
        quantization: how a ctranslate2 folder keeps its weights.
        **decode_options: fields of DecodeConfig; the run's own where None.
    """
    final = pathlib.Path(to)
    if final.exists():
        raise InputError(f"{final} exists; give --to a new version, like {_next_version(final)}.")
    # Not a number, so that a server that watches the parent folder takes no notice of it.
    partial = final.with_name(f".{final.name}.partial")
    try:
        if format == "ctranslate2":
            if jit_compile or dtype != "float32":
                raise InputError(
                    "--jit_compile and --dtype are of --format saved_model; CTranslate2 has "
                    "--quantization."
                )
            told = _write_ctranslate2(run_dir, partial, quantization, decode_options)
        else:
            if quantization != "float32":
                raise InputError(
                    "--quantization is of --format ctranslate2; a SavedModel has --dtype."
                )
            told = _write_saved_model(run_dir, partial, jit_compile, dtype, decode_options)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"exported {final}: {told}")


def _write_saved_model(
    run_dir: str,
    folder: pathlib.Path,
    jit_compile: bool,
    dtype: DType,
    decode_options: dict[str, Any],
) -> str:
    """Writes and checks; returns what was found."""
    from tf_transformer.export import manifest, metadata, warm_up
    from tf_transformer.export.check import check
    from tf_transformer.export.micro_batches import compiled_shapes
    from tf_transformer.translator import Translator

    translator = Translator.from_run(run_dir, dtype, **decode_options)
    sentences = samples(run_dir)
    for each in stages(translator):
        shutil.rmtree(folder, ignore_errors=True)
        each.save(folder, jit_compile=jit_compile)
        requirements = manifest.check(folder, jit_compile)
        check(folder, each, sentences)
    shapes = compiled_shapes(each.max_source_length) if jit_compile else warm_up.SHAPES
    warm_up.write(folder, warm_up.batches(shapes, each.tokenizer.encode))
    facts = metadata.describe(pathlib.Path(run_dir), each)
    metadata.write(folder, facts | {"requires": asdict(requirements)})
    return (
        f"{len(sentences)} sentences checked in a session; runs in TF Serving "
        f"{requirements.lowest_server} and later"
        + " with --xla_cpu_compilation_enabled=true"
        * jit_compile
    )


def stages(translator: "Translator") -> "list[Translator]":
    """What is saved and checked, the last of which stays.

    In bfloat16 a right export differs from the run here and there, and so may a wrong one. The
    same weights and the same graph in float32 may not.
    """
    return list(dict.fromkeys([translator.with_dtype("float32"), translator]))


def _write_ctranslate2(
    run_dir: str,
    folder: pathlib.Path,
    quantization: Quantization,
    decode_options: dict[str, Any],
) -> str:
    """Writes and checks; returns what was found."""
    from tf_transformer.export import check_ctranslate2, ctranslate2
    from tf_transformer.translator import Translator

    ctranslate2.require_package()
    translator = Translator.from_run(run_dir, **decode_options)
    # Rounded weights give other scores, and a wrong export may, too; the same weights may not.
    for each in dict.fromkeys(("float32", quantization)):
        shutil.rmtree(folder, ignore_errors=True)
        ctranslate2.write(translator, folder, each)
        agreement = check_ctranslate2.check(folder, translator, samples(run_dir), each)
    return str(agreement)


def samples(run_dir: str) -> list[str]:
    """What an export is checked with: sentences of the run's validation text, and odd ones."""
    lines = RunFolder(run_dir).load_samples()
    return lines + ODD_SENTENCES


def _next_version(path: pathlib.Path) -> pathlib.Path:
    if not path.name.isdigit():
        return path / "1"
    taken = [int(p.name) for p in path.parent.iterdir() if p.name.isdigit()]
    return path.with_name(str(max(taken) + 1))
