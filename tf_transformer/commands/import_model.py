"""Makes a run from a Marian model: tf-transformer import --marian DIR --run_dir runs/x."""

import os
import pathlib
import secrets
import shutil

from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder


def main(marian: str, run_dir: str) -> None:
    """Imports a Marian or OPUS-MT model as a run.

    The run translates like the model, and each command takes it: translate, evaluate, export, demo.
    A training can start with its weights: --train.init_from.

    Args:
        marian: folder of the model as Transformers has it: config.json, model.safetensors or
            pytorch_model.bin, source.spm, target.spm, vocab.json. Or a folder of Marian's own
            files: decoder.yml, and the files that it names.
        run_dir: folder of the new run.
    """
    final = pathlib.Path(run_dir)
    if os.path.lexists(final):
        raise InputError(f"--run_dir {final} exists. Give the name of a new folder.")
    from tf_transformer.imports import marian_folder, marian_npz

    folder = pathlib.Path(marian)
    read = marian_npz.read if marian_npz.is_marian(folder) else marian_folder.read
    imported = read(folder)
    partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        marian_folder.write(imported, RunFolder(partial))
        partial.rename(final)
    except OSError as error:
        raise InputError(f"--run_dir {final} cannot be written: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for note in imported.notes:
        print(f"note: {note}")
    print(
        f"imported {final}: {imported.model.count_params():,} parameters, {imported.codec}, "
        f"{imported.config.data.source_language or '?'} to "
        f"{imported.config.data.target_language or '?'}"
    )
