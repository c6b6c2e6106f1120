"""What folders that translate without TensorFlow have in common: CTranslate2, LiteRT and ONNX.

Each has the SentencePiece models, metadata.json, and translate.pyz, an archive of Python files that
reads and writes texts. `standalone_model.py` is the base of its program.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import tf_transformer
from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.export.check import sentences_of, with_languages
from tf_transformer.files.writing import as_lines
from tf_transformer.run.run import Run
from tf_transformer.text.kept_spans import spans

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

# Options that the folders do not have, and the values that turn them off.
LACKING = {"sampling": "false", "second_search": "false"}
# The checks of a folder that keeps spans also translate these.
WITH_SPANS = (
    "See https://example.org/a?b=c or write to me@example.org.",
    "It weighs 5 kg, <b>{name}</b> says.",
    "<i>I have %d messages.</i> &nbsp; <p>🙂 Thank you!</p><p>Yes.</p>",
)
LEFT_OUT = ("prefixes", "terms", "warnings", "word_probabilities")  # what a `Translator` also gives
ARCHIVE = "translate.pyz"


def require_supported(
    decode: DecodeConfig, format: str, lacking: Mapping[str, str] = LACKING
) -> None:
    """Raises an `InputError` for an option of `lacking`, by default those of all folders."""
    given = {name: value for name in lacking if (value := getattr(decode, name))}
    if given:
        names = ", ".join(f"decode.{name}={value}" for name, value in given.items())
        options = " ".join(f"--{name} {lacking[name]}" for name in given)
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


def sentences_for(run: Run, translator: "Translator") -> list[str]:
    """The sentences that checks of a folder translate."""
    more = WITH_SPANS if translator.config.keep else ()
    return with_languages([*sentences_of(run), *more], translator)


def require_spans(
    decode: DecodeConfig, sentences: Sequence[str], translations: Sequence[str]
) -> None:
    """Raises a `RuntimeError` for a translation without a kept span of its sentence."""
    for sentence, translation in zip(sentences, translations, strict=True):
        wanted, found = (Counter(spans(x, decode.keep)) for x in (sentence, translation))
        if any(found[span] != count for span, count in wanted.items()):
            raise RuntimeError(
                f"the export loses spans that decode.keep names. Source: {sentence!r:.200}; its "
                f"translation: {translation!r:.200}."
            )


def run(
    folder: pathlib.Path, sentences: Sequence[str] = (), option: str = "", content: bytes = b""
) -> list[dict[str, Any]]:
    """The outputs of a folder's own program, in a process without TensorFlow.

    `option` is one that names a file, and `content` is what the file contains.
    """
    with tempfile.TemporaryDirectory() as temporary:
        # Only its own files: without the path of this process, where this package is.
        command = [sys.executable, "-P", str(folder / ARCHIVE)]
        if option:
            file = pathlib.Path(temporary, "file")
            file.write_bytes(content)
            command += [f"--{option}", str(file)]
        # CTranslate2's threads would compute while they wait, also beside another program.
        process = subprocess.run(
            command,
            env={"OMP_WAIT_POLICY": "passive"} | os.environ,
            input=as_lines(sentences),
            capture_output=True,
            check=False,
        )
    if process.returncode:
        raise RuntimeError(
            f"the export does not run without TensorFlow:\n{process.stderr.decode()}"
        )
    return [json.loads(line) for line in process.stdout.decode("utf-8").split("\n")[:-1]]
