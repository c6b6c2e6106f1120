"""Exports a run for TF Serving: python -m export --run_dir runs/x --to served/x/1."""

import pathlib
import shutil
from typing import TYPE_CHECKING, Any

from tf_transformer import command_line
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]


def main(
    run_dir: str,
    to: str,
    jit_compile: bool = False,
    dtype: command_line.DType = "float32",
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
        **decode_options: fields of DecodeConfig; the run's own where None.
    """
    from export import metadata, warm_up
    from export.check import check
    from tf_transformer.pieces import compiled_shapes
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
        facts = metadata.describe(pathlib.Path(run_dir), each) | {"jit_compile": jit_compile}
        metadata.write(partial, facts)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"exported {final}: {len(sentences)} sentences checked in a session")


def stages(translator: "Translator") -> "list[Translator]":
    """What is saved and checked, the last of which stays.

    In bfloat16 a right export differs from the run here and there, and so may a wrong one. The
    same weights and the same graph in float32 may not.
    """
    return list(dict.fromkeys([translator.with_dtype("float32"), translator]))


def _next_version(path: pathlib.Path) -> pathlib.Path:
    if not path.name.isdigit():
        return path / "1"
    taken = [int(p.name) for p in path.parent.iterdir() if p.name.isdigit()]
    return path.with_name(str(max(taken) + 1))


if __name__ == "__main__":
    command_line.run(main)
