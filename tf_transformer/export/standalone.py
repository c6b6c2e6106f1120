"""What folders that translate without TensorFlow have in common: CTranslate2, LiteRT and ONNX.

Each has the SentencePiece models, metadata.json, and translate.pyz, an archive of Python files that
reads and writes texts. `standalone_model.py` is the base of its program.
"""

import functools
import json
import pathlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import tf_transformer
from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

# Options that the folders do not have, and the values that turn them off.
LACKING = {"sampling": "false", "second_search": "false"}
LEFT_OUT = ("prefixes", "terms", "warnings", "word_probabilities")  # what a `Translator` also gives
ARCHIVE = "translate.pyz"


def require_supported(decode: DecodeConfig, format: str) -> None:
    """Raises an `InputError` for an option that the folders lack."""
    given = {name: value for name in LACKING if (value := getattr(decode, name))}
    if given:
        names = ", ".join(f"decode.{name}={value}" for name, value in given.items())
        options = " ".join(f"--{name} {LACKING[name]}" for name in given)
        raise InputError(
            f"--format {format} does not support {names}. Use --format saved_model, or give "
            f"{options}."
        )


def write(
    translator: "Translator", folder: pathlib.Path, program: str, facts: Mapping[str, Any]
) -> None:
    """Writes all but the model's file: tokenizers, metadata, and the archive of a program.

    The program is a module of this package. The facts are for metadata.json.
    """
    translator.codec.save(folder)
    content = {**facts, "decoding": options_of(translator)}
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    (folder / "metadata.json").write_text(text, "utf-8")
    write_archive(folder / ARCHIVE, program)


def options_of(translator: "Translator") -> dict[str, Any]:
    """The options of the search and of its task by name."""
    own = {**translator.own_options, "max_source_length": translator.max_source_length}
    return asdict(translator.config) | own


def write_archive(path: pathlib.Path, program: str) -> None:
    """Writes an archive of a program with all files of this package that it imports."""
    package = tf_transformer.__name__
    root = pathlib.Path(tf_transformer.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        start = f'import runpy\n\nrunpy.run_module("{program}", run_name="__main__")\n'
        archive.writestr("__main__.py", start)
        for name in _imported(program):
            first, *others = name.split(".")
            if first == package:
                file = root.joinpath(*others)
                file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
                archive.write(file, file.relative_to(root.parent))


@functools.cache
def _imported(program: str) -> list[str]:
    """The modules that a program imports, in the order of their names."""
    imports = f"import sys, {program}; print(*sys.modules)"
    command = [sys.executable, "-c", imports]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(printed.split())
