"""Exports a run for TF Serving: python -m export --run_dir runs/x --to served/x/1.

With --format ctranslate2, for CTranslate2.
"""

import json
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Literal

from tf_transformer import command_line
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]
# Batches are padded differently, and rounding with them. It moves scores by less than this,
SCORE_TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}
# and decides near ties, of which draws at random have many: how many sentences may differ.
MAY_DIFFER = {"float32": 0.0, "bfloat16": 0.5}
MAY_DIFFER_IF_DRAWN = {"float32": 0.1, "bfloat16": 1.0}


def main(
    run_dir: str,
    to: str,
    jit_compile: bool = False,
    dtype: command_line.DType = "float32",
    format: Literal["saved_model", "ctranslate2"] = "saved_model",
    quantization: command_line.Quantization = "float32",
    **decode_options: Any,
) -> None:
    """Writes a SavedModel that takes and gives raw strings, and checks it before it counts.

    The new model is loaded into a session in a fresh process, as a server does, and must
    translate sample sentences as translate.py does. Only then it gets its final name.

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
    if format == "ctranslate2":
        _export_ctranslate2(run_dir, to, jit_compile, dtype, quantization, **decode_options)
        return
    if quantization != "float32":
        raise InputError("--quantization is of --format ctranslate2; a SavedModel has --dtype.")
    from export import warm_up
    from tf_transformer.serving import compiled_shapes
    from tf_transformer.translator import Translator

    final = pathlib.Path(to)
    if final.exists():
        raise InputError(f"{final} exists; give --to a new version, like {_next_version(final)}.")
    translator = Translator.from_run(run_dir, dtype, **decode_options)
    samples = (pathlib.Path(run_dir) / "samples.txt").read_text("utf-8").split("\n")[:-1]
    sentences = samples + ODD_SENTENCES
    # Not a number, so that a server that watches the parent folder takes no notice of it.
    partial = final.with_name(f".{final.name}.partial")
    try:
        for each in stages(translator):
            shutil.rmtree(partial, ignore_errors=True)
            each.save(partial, jit_compile=jit_compile)
            check(partial, each, sentences)
        shapes = compiled_shapes(each.max_source_length) if jit_compile else warm_up.SHAPES
        warm_up.write(partial, warm_up.batches(shapes, each.tokenizer.encode))
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"exported {final}: {len(sentences)} sentences checked in a session")


def _export_ctranslate2(
    run_dir: str,
    to: str,
    jit_compile: bool,
    dtype: command_line.DType,
    quantization: command_line.Quantization,
    **decode_options: Any,
) -> None:
    if jit_compile or dtype != "float32":
        raise InputError(
            "--jit_compile and --dtype are of --format saved_model; CTranslate2 has --quantization."
        )
    from export import check_ctranslate2

    final = pathlib.Path(to)
    if final.exists():
        raise InputError(f"{final} exists; give --to a new version, like {_next_version(final)}.")
    agreement = check_ctranslate2.export(
        run_dir, final, quantization, ODD_SENTENCES, **decode_options
    )
    print(f"exported {final}: {agreement}")


def stages(translator: "Translator") -> "list[Translator]":
    """What is saved and checked, the last of which stays.

    In bfloat16 a right export differs from the run here and there, and so may a wrong one. The
    same weights and the same graph in float32 may not.
    """
    return list(dict.fromkeys([translator.with_dtype("float32"), translator]))


def check(saved_model: pathlib.Path, translator: "Translator", sentences: list[str]) -> None:
    """Compares a SavedModel, run in a fresh process, with the translator it came from.

    Raises:
        RuntimeError: when the process fails or more translations or scores differ than may.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    process = subprocess.run(
        [sys.executable, str(program), str(saved_model)],
        input="".join(sentence + "\n" for sentence in sentences).encode("utf-8"),
        capture_output=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"the export does not run in a session:\n{process.stderr.decode()}")
    served = [json.loads(line) for line in process.stdout.decode("utf-8").split("\n")[:-1]]
    dtype = translator.model.compute_dtype
    pairs = zip(sentences, translator(sentences), served, strict=True)
    differences = [
        f"Source: {sentence!r}; run: {expected.text!r} ({expected.score:.4f}); "
        f"export: {found['translation']!r} ({found['score']:.4f})."
        for sentence, expected, found in pairs
        if expected.text != found["translation"]
        or abs(expected.score - found["score"]) > SCORE_TOLERANCE[dtype]
    ]
    may_differ = MAY_DIFFER_IF_DRAWN if translator.config.sampling else MAY_DIFFER
    if len(differences) > may_differ[dtype] * len(sentences):
        raise RuntimeError(
            f"the export differs from the run it came from, {len(differences)} of "
            f"{len(sentences)} times. {differences[0]}"
        )


def _next_version(path: pathlib.Path) -> pathlib.Path:
    if not path.name.isdigit():
        return path / "1"
    taken = [int(p.name) for p in path.parent.iterdir() if p.name.isdigit()]
    return path.with_name(str(max(taken) + 1))


if __name__ == "__main__":
    command_line.run(main)
