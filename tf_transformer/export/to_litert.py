"""Writes a translator as a folder for LiteRT, the runtime of TensorFlow Lite's files.

model.tflite has the whole search, from ids to ids, in LiteRT's own operations. Such a search needs
shapes that are known, so the file has one for each of some lengths. `standalone.py` writes the rest
of the folder.
"""

import importlib.util
import pathlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer.config import Quantization
from tf_transformer.errors import InputError
from tf_transformer.export import standalone
from tf_transformer.inference.kept_graph import attention
from tf_transformer.inference.search import Search, token_log_probabilities
from tf_transformer.inference.text_graph import Outputs, Traced
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.programs import run_program

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

SHORT = (16, 32, 64, 128)  # lengths of sources below the largest; each takes time to convert
FILE = "model.tflite"
_LONGEST = 24 * 3600  # seconds


def write(
    translator: "Translator",
    folder: pathlib.Path,
    quantization: Quantization,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Writes the folder from a translator with float32 weights.

    The quantization is the dtype of the stored weights. In int8, the inputs of large products are
    rounded, too. `facts` are for metadata.json. An `InputError` names an option that the form
    lacks, or why the converter failed.
    """
    require_package()
    standalone.require_supported(translator.config, "litert")
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
    own = {"lengths": lengths, "weights": quantization, "left_out": standalone.LEFT_OUT}
    program = "tf_transformer.export.run_in_litert"
    standalone.write(translator, folder, program, {**(facts or {}), **own})


def require_package() -> None:
    """Raises an `InputError` when ai-edge-litert is not installed."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise InputError(
            "--format litert needs the package ai-edge-litert: pip install 'tf_transformer[litert]'"
        )


def lengths_up_to(longest: int) -> list[int]:
    """The lengths of sources that a file has searches for."""
    return [*(length for length in SHORT if length < longest), longest]


@own_settings()
def _write_graphs(translator: "Translator", lengths: list[int], folder: str) -> None:
    """Writes a SavedModel with the signatures that `run_in_litert.py` describes."""
    archive = keras.export.ExportArchive()
    archive.track(translator.model)
    search = replace(translator.graph().whole_search, static_shapes=True)
    graphs = _Graphs(search)

    def add(name: str, function: Callable[..., Outputs], *inputs: tf.TensorSpec) -> Traced:
        traced = Traced(function, *inputs)
        archive.add_endpoint(name, traced.__call__, input_signature=list(inputs))
        return traced

    for length in lengths:
        source = _ids("source", length)
        searched = add(f"search_{length}", graphs.search, source)
        add(f"score_{length}", graphs.score, source, _ids("target", length))
        if search.config.keep:
            longest = searched.concrete.structured_outputs["ids"].shape[1]
            add(f"attend_{length}", graphs.attend, source, _ids("target", longest))
    archive.write_out(folder, verbose=False)


def _ids(name: str, length: int) -> tf.TensorSpec:
    return tf.TensorSpec((1, length), tf.int32, name=name)


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

    def attend(self, source: tf.Tensor, target: tf.Tensor) -> Outputs:
        """The attention of each token of a target to those of the source, (T, S)."""
        weights = attention(self.of_ids.model, source, target, self.of_ids.config)
        return {"attention": weights[0]}
