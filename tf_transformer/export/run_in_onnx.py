"""Translates with a folder from `python -m export --format onnx`; see `standalone_model.py`.

    python FOLDER/translate.pyz --ids LISTS

searches for each line of the file LISTS, a list of source ids such as [17, 4, 2], and prints the
`ids`, `scores` and `log_probabilities` of all hypotheses. The program needs the packages
onnxruntime, sentencepiece and NumPy.

The file model.onnx has the whole search, for ids in int32:

- input `source` (B, S), texts, each with the end id 2, then 0;
- output `ids` (B, N, L), the translations, best first, each with the end id, then 0;
- output `scores`: float32 (B, N), log-probabilities divided by the length penalty;
- output `log_probabilities`: float32 (B, N), nats.

For kept spans, the file attention.onnx has the attention of given translations. Both files have
their weights in weights.bin.

- inputs `source` (B, S) and `target` (B, T), texts and their translations;
- output `attention`: float32 (B, T, S), of each token of a target to those of its source but the
  end id.
"""

import functools
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_transformer.export import standalone_model
from tf_transformer.export.standalone_model import Hypotheses, StandaloneModel

# Weights in int8 become float32 when the model is loaded. Without this option, onnxruntime also
# rounds the inputs of their products to int8.
IN_FLOAT32 = {"session.disable_quant_qdq": "1"}


class Model(StandaloneModel):
    """An exported folder, ready to translate strings on CPUs.

    Args:
        folder: path of the folder.
        threads: of a product; 0: one for each core.
        rounds_inputs: whether inputs of products with weights in int8 may become int8, too. Large
            models are then faster, and translations differ more.
    """

    file, format = "model.onnx", "onnx"
    attention_file = "attention.onnx"

    def __init__(self, folder: str | os.PathLike, threads: int = 0, rounds_inputs: bool = False):
        super().__init__(folder)
        self._threads, self._options = threads, {} if rounds_inputs else IN_FLOAT32
        self.session = self._session(self.file)

    def _session(self, file: str) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        for name, value in self._options.items():
            options.add_session_config_entry(name, value)
        path, providers = str(self.path / file), ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(path, options, providers=providers)

    @functools.cached_property
    def _attention(self) -> Any:
        return self._session(self.attention_file)  # few texts need it

    def attend(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        pair = {"source": source, "target": target}
        rows = {name: np.array([ids], np.int32) for name, ids in pair.items()}
        return self._attention.run(["attention"], rows)[0][0]

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypotheses]:
        """The hypotheses for rows of source ids. Rows of similar length share a batch."""
        found: dict[int, Hypotheses] = {}
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        for start in range(0, len(order), self.options["batch_size"]):
            batch = order[start : start + self.options["batch_size"]]
            padded = np.zeros((len(batch), max(len(sources[i]) for i in batch)), np.int32)
            for row, i in zip(padded, batch, strict=True):
                row[: len(sources[i])] = sources[i]
            outputs = self.session.run(list(Hypotheses._fields), {"source": padded})
            for i, *fields in zip(batch, *outputs, strict=True):
                ids, *numbers = (field.tolist() for field in fields)
                found[i] = Hypotheses([[x for x in row if x] for row in ids], *numbers)
        return [found[i] for i in range(len(sources))]


def main(folder: str, ids: str = "") -> list[dict[str, Any]]:
    """Translates the lines of stdin, or searches for a file of lists of ids."""
    model = Model(folder)
    if not ids:
        return standalone_model.results(model)
    with open(ids, "rb") as file:
        rows = [json.loads(line) for line in standalone_model.lines(file, ids)]
    return [hypotheses._asdict() for hypotheses in model.search(rows)]


if __name__ == "__main__":
    standalone_model.run(main, "onnxruntime", __doc__, ids="file of lists of ids to search for")
