"""Makes a run from the model of another program: tf-transformer import --marian DIR --run_dir R."""

import os
import pathlib
import secrets
import shutil
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.run.folder import RunFolder

if TYPE_CHECKING:
    from tf_transformer.imports.imported import Imported


def main(
    *,
    run_dir: LocalPath,
    marian: LocalPath = "",
    ctranslate2: LocalPath = "",
    opennmt_tf: LocalPath = "",
    fairseq: LocalPath = "",
    tokenizer: LocalPath = "",
    num_heads: int = 0,
) -> None:
    """Imports the model of another program as a run.

    The run translates like the model, and each command takes it: translate, evaluate, export, demo.
    A training run can start with its weights: --train.init_from. Give one folder of a model.

    Args:
        run_dir: folder of the new run.
        marian: folder of a Marian or OPUS-MT model as Transformers has it: config.json,
            model.safetensors or pytorch_model.bin, source.spm, target.spm, vocab.json. Or a folder
            of Marian's own files: decoder.yml, and the files that it names. Or a folder of a
            Firefox model: a .bin file and vocab.*.spm.
        ctranslate2: folder of a CTranslate2 model: model.bin, config.json, vocabularies, and
            SentencePiece models.
        opennmt_tf: folder of a model of OpenNMT-tf 2: the checkpoint, one .yml file with the
            options of the training, the vocabularies that it names, and SentencePiece models.
        fairseq: folder of a transformer of fairseq: one .pt file, which needs PyTorch, a dictionary
            for each language, such as dict.de.txt, and SentencePiece models.
        tokenizer: SentencePiece model, or two with a comma between them for source and target, if
            the folder has none. Not for marian.
        num_heads: attention heads, for opennmt_tf; 0: as model_description.py says.
    """
    final = pathlib.Path(run_dir)
    if os.path.lexists(final):
        raise InputError(f"--run_dir {final} exists. Give the name of a new folder.")
    folders = {"marian": marian, "ctranslate2": ctranslate2}
    folders |= {"opennmt_tf": opennmt_tf, "fairseq": fairseq}
    program = _program(folders, tokenizer, num_heads)
    from tf_transformer.imports import imported as imports

    imported = _read(program, pathlib.Path(folders[program]), tokenizer, num_heads)
    partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir(parents=True)
        imports.write(imported, RunFolder(partial))
        partial.rename(final)
    except OSError as error:
        raise InputError(f"--run_dir {final} cannot be written: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for note in imported.notes:
        print(f"note: {note}")
    pair = imported.config.data.source_language, imported.config.data.target_language
    languages = " to ".join(pair) if all(pair) else "unknown languages"
    parameters = f"{imported.model.count_params():,} parameters"
    print(f"imported {final}: {parameters}, {imported.codec}, {languages}")


def _program(folders: dict[str, str], tokenizer: str, num_heads: int) -> str:
    """The program whose folder is given, after a check of the options that go with it."""
    given = [name for name, folder in folders.items() if folder]
    if len(given) != 1:
        names = ", ".join(f"--{name}" for name in folders)
        got = " and ".join(f"--{name}" for name in given) or "none"
        raise InputError(f"give one model with one of {names}, got {got}.")
    (program,) = given
    for name, value, of in (
        ("tokenizer", tokenizer, [name for name in folders if name != "marian"]),
        ("num_heads", num_heads, ["opennmt_tf"]),
    ):
        if value and program not in of:
            expected = " or ".join(f"--{name}" for name in of)
            raise InputError(f"--{name} needs {expected}, got --{program}.")
    return program


def _read(program: str, folder: pathlib.Path, tokenizer: str, num_heads: int) -> "Imported":
    """Reads the folder of a program's model."""
    from tf_transformer.imports import ctranslate2_folder, fairseq_folder, opennmt_tf_folder

    if not folder.is_dir():
        raise InputError(f"--{program} {folder} is not a folder. Give the folder of a model.")
    if program == "ctranslate2":
        return ctranslate2_folder.read(folder, tokenizer)
    if program == "fairseq":
        return fairseq_folder.read(folder, tokenizer)
    if program == "opennmt_tf":
        return opennmt_tf_folder.read(folder, tokenizer, num_heads)
    from tf_transformer.imports import marian_folder, marian_npz

    return (marian_npz if marian_npz.is_marian(folder) else marian_folder).read(folder)
