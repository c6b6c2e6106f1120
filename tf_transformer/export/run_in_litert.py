"""Translates with a folder from `python -m export --format litert`; see `standalone_model.py`.

    python FOLDER/translate.pyz --translations TRANSLATIONS < sentences

scores the file TRANSLATIONS; its line n is the translation of line n of the sentences. It prints
{"score": ..., "log_probability": ...}. The program needs the packages ai-edge-litert, sentencepiece
and NumPy.

The file model.tflite has two or three signatures for each length S of `lengths` in metadata.json.
All of them share the weights. Ids are int32.

- search_S: `source` (1, S), the ids of a text with the end id 2, then 0. Results: `ids` (N, L), the
  best translations, each with the end id, then 0; `scores` float32 (N,).
- score_S: `source` (1, S) and `target` (1, S). Result: `log_probabilities` float32 (S,), of each
  token of the target, in nats; 0 behind the end id.
- attend_S, for kept spans: `source` (1, S) and `target` (1, L). Result: `attention` float32 (L, S),
  of each token of the target to those of the source but the end id.
"""

import math
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf_transformer.export import standalone_model
from tf_transformer.export.standalone_model import Hypotheses, StandaloneModel


class Model(StandaloneModel):
    """An exported folder, ready to translate strings on CPUs.

    A call takes one sentence at a time, with a number of threads.
    """

    file, format = "model.tflite", "litert"

    def __init__(self, folder: str | os.PathLike, threads: int = 1):
        super().__init__(folder)
        self._file = _File(self.path / self.file, threads)

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypotheses]:
        outputs = [self._run("search", len(source), source=source) for source in sources]
        return [
            Hypotheses([ids[ids > 0].tolist() for ids in row["ids"]], row["scores"].tolist(), [])
            for row in outputs
        ]

    def attend(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        found = self._run("attend", len(source), source=source, target=target)["attention"]
        return found[: len(target), : len(source)]

    def log_probabilities(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[float]:
        outputs = [
            self._run("score", max(map(len, pair)), source=pair[0], target=pair[1])
            for pair in pairs
        ]
        return [float(row["log_probabilities"].sum()) for row in outputs]

    def _run(self, name: str, longest: int, **rows: Sequence[int]) -> dict[str, np.ndarray]:
        """Runs the signature of the smallest length from `longest` on with rows of ids."""
        length = next(length for length in self.facts["lengths"] if length >= longest)
        return self._file.run(f"{name}_{length}", rows)


class _File:
    """The signatures of a LiteRT file."""

    def __init__(self, path: pathlib.Path, threads: int):
        from ai_edge_litert.compiled_model import CompiledModel
        from ai_edge_litert.cpu_options import CpuOptions
        from ai_edge_litert.hardware_accelerator import HardwareAccelerator
        from ai_edge_litert.options import Options

        # Without this folder, each signature has a copy of the weights in memory.
        self._folder = tempfile.TemporaryDirectory()
        of_cpu = CpuOptions(threads, xnnpack_weight_cache_path=f"{self._folder.name}/weights")
        options = Options(hardware_accelerators=HardwareAccelerator.CPU, cpu_options=of_cpu)
        self._model = CompiledModel.from_file(str(path), options=options)

    def run(self, signature: str, rows: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
        """The outputs of a signature by name, for rows of ids."""
        of_inputs = {}
        for name, details in self._model.get_input_tensor_details(signature).items():
            padded = np.zeros(details["shape"], np.int32)
            padded[0, : len(rows[name])] = rows[name]
            of_inputs[name] = self._model.create_input_buffer_by_name(signature, name)
            of_inputs[name].write(padded)
        details = self._model.get_output_tensor_details(signature)
        buffers = {
            name: self._model.create_output_buffer_by_name(signature, name) for name in details
        }
        self._model.run_by_name(signature, of_inputs, buffers)
        result = {}
        for name, of_output in details.items():
            shape = of_output["shape"]
            values = buffers[name].read(math.prod(shape), np.dtype(of_output["dtype"]).type)
            result[name] = values.reshape(shape)
        return result


def main(folder: str, translations: str = "") -> list[dict[str, Any]]:
    """Translates the lines of stdin, or scores a file of their translations."""
    return standalone_model.results(Model(folder), translations)


if __name__ == "__main__":
    standalone_model.run(
        main, "ai-edge-litert", __doc__, translations="file of translations to score"
    )
