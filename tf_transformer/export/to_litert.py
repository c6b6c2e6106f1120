"""Writes a translator as a folder for LiteRT, the runtime of TensorFlow Lite's files.

model.tflite has the whole search, from ids to ids, in LiteRT's own operations. Such a search needs
shapes that are known, so the file has one for each of some lengths. The folder also has the
SentencePiece models, metadata.json, and translate.pyz, an archive of Python files that reads and
writes texts; `run_in_litert.py` is its program.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import tensorflow as tf

import tf_transformer
from tf_transformer.config import DecodeConfig, Quantization
from tf_transformer.errors import InputError
from tf_transformer.inference.search import Search, token_log_probabilities
from tf_transformer.inference.text_graph import Outputs, Traced
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.programs import run_program

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

SHORT = (16, 32, 64, 128)  # lengths of sources below the largest; each takes time to convert
# Options that the folder does not have, and the values that turn them off. Samples are drawn from
# numbers of 64 bits, for which LiteRT has no operations.
LACKING = {"keep": "[]", "sampling": "false", "second_search": "false"}
LEFT_OUT = ("prefixes", "terms", "warnings", "word_probabilities")  # what a `Translator` also gives
PROGRAM = "tf_transformer.export.run_in_litert"
FILE, ARCHIVE = "model.tflite", "translate.pyz"
_LONGEST = 24 * 3600  # seconds
_START = f'import runpy\n\nrunpy.run_module("{PROGRAM}", run_name="__main__")\n'


def write(translator: "Translator", folder: pathlib.Path, quantization: Quantization) -> None:
    """Writes the folder from a translator with float32 weights.

    The quantization is the dtype of the stored weights. In int8, the inputs of large products are
    rounded, too. An `InputError` names an option that the form lacks, or why the converter failed.
    """
    require_package()
    require_supported(translator.config)
    lengths = lengths_up_to(translator.max_source_length)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        _write_graphs(translator, lengths, temporary)
        work = {"graphs": temporary, "to": str(folder / FILE), "weights": quantization}
        try:
            run_program("tf_transformer.export.litert_file", work, _LONGEST)
        except RuntimeError as error:
            raise InputError(
                f"LiteRT's converter cannot convert this model: {error}. Use --format saved_model."
            ) from error
    translator.codec.save(folder)
    write_archive(folder / ARCHIVE)
    facts = {"decoding": options_of(translator), "lengths": lengths}
    write_facts(folder, facts | {"weights": quantization, "left_out": LEFT_OUT})


def options_of(translator: "Translator") -> dict[str, Any]:
    """The options of the search and of its task."""
    own = {**translator.own_options, "max_source_length": translator.max_source_length}
    return asdict(translator.config) | own


def write_facts(folder: pathlib.Path, facts: Mapping[str, Any]) -> None:
    """Adds facts to metadata.json."""
    path = folder / "metadata.json"
    before = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**before, **facts}, ensure_ascii=False, indent=2) + "\n", "utf-8")


def require_package() -> None:
    """Raises an `InputError` when ai-edge-litert is not installed."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise InputError(
            "--format litert needs the package ai-edge-litert: pip install 'tf_transformer[litert]'"
        )


def require_supported(decode: DecodeConfig) -> None:
    """Raises an `InputError` for an option that the folder does not have."""
    lacking = {name: value for name in LACKING if (value := getattr(decode, name))}
    if lacking:
        given = ", ".join(f"decode.{name}={value}" for name, value in lacking.items())
        options = " ".join(f"--{name} {LACKING[name]}" for name in lacking)
        raise InputError(
            f"LiteRT does not support {given}. Use --format saved_model, or give {options}."
        )


def lengths_up_to(longest: int) -> list[int]:
    """The lengths of sources that a file has searches for."""
    return [*(length for length in SHORT if length < longest), longest]


@own_settings()
def _write_graphs(translator: "Translator", lengths: list[int], folder: str) -> None:
    """Writes a SavedModel with the signatures that `run_in_litert.py` describes."""
    archive = keras.export.ExportArchive()
    archive.track(translator.model)
    search = replace(translator.graph().whole_search, static_shapes=True, grows=False)
    graphs = _Graphs(search)
    for length in lengths:
        source, target = (
            tf.TensorSpec((1, length), tf.int32, name=name) for name in ("source", "target")
        )
        for name, function, *inputs in (
            ("search", graphs.search, source),
            ("score", graphs.score, source, target),
        ):
            traced = Traced(function, *inputs).__call__
            archive.add_endpoint(f"{name}_{length}", traced, input_signature=inputs)
    archive.write_out(folder, verbose=False)


class _Graphs(NamedTuple):
    """The functions of the signatures, for one sentence."""

    of_ids: Search

    def search(self, source: tf.Tensor) -> Outputs:
        """The ids (N, L) and scores (N,) of the best translations."""
        best = self.of_ids(source)
        return {"ids": best.ids[0], "scores": best.scores[0]}

    def score(self, source: tf.Tensor, target: tf.Tensor) -> Outputs:
        """The log-probability of each token of a target, (S,)."""
        of_tokens = token_log_probabilities(self.of_ids.model, source, target)
        return {"log_probabilities": of_tokens[0]}


def write_archive(path: pathlib.Path) -> None:
    """Writes the program that runs the folder, with all files of this package that it imports."""
    package = tf_transformer.__name__
    root = pathlib.Path(tf_transformer.__file__).parent
    program = f"import sys, {PROGRAM}; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _START)
        for name in sorted(imported):
            first, *others = name.split(".")
            if first == package:
                file = root.joinpath(*others)
                file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
                archive.write(file, file.relative_to(root.parent))
