"""Translates with a folder from `python -m export --format litert`, without TensorFlow.

    python FOLDER/translate.pyz < sentences
    python FOLDER/translate.pyz --translations TRANSLATIONS < sentences

The first form prints one JSON object per line read: {"translation": ..., "score": ...}. The second
form scores the file TRANSLATIONS; its line n is the translation of line n of the sentences. It
prints {"score": ..., "log_probability": ...}. The program needs the packages ai-edge-litert,
sentencepiece and NumPy. It reads and divides text like the commands: translate.pyz holds the files
of the package that do so.

In Python, put the archive on the path of modules:

    sys.path.insert(0, "FOLDER/translate.pyz")
    from tf_transformer.export.run_in_litert import Model
    print(Model("FOLDER")(["a house"])[0].text)

The file model.tflite has two signatures for each length S of `lengths` in metadata.json. All of
them share the weights. Ids are int32.

- search_S: `source` (1, S), the ids of a text with the end id 2, then 0. Results: `ids` (N, L), the
  best translations, each with the end id, then 0; `scores` float32 (N,).
- score_S: `source` (1, S) and `target` (1, S). Result: `log_probabilities` float32 (S,), of each
  token of the target, in nats; 0 behind the end id.
"""

import argparse
import json
import math
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.files.text_lines import STDIN, TextError, chunks_of, lines_of
from tf_transformer.text.codec import Codec
from tf_transformer.text.plain_texts import PlainTexts, Scored, Source, joined

NOTHING = -1e8  # the score of a missing translation is lower


class PairScore(NamedTuple):
    """The score of a given translation."""

    score: float  # log-probability divided by the length penalty
    log_probability: float  # nats


class Model:
    """An exported folder, ready to translate strings on CPUs.

    A call takes one sentence at a time, with a number of threads.

    Raises:
        InputError: for a folder that this program did not write, or a text with a wrong target tag.
    """

    def __init__(self, folder: str | os.PathLike, threads: int = 1):
        path = pathlib.Path(folder)
        if not (path / "model.tflite").is_file():
            raise InputError(
                f"{folder} is not an exported folder on this machine. Make one: python -m export "
                "--format litert."
            )
        facts = json.loads((path / "metadata.json").read_text("utf-8"))
        self.options, self.lengths = facts["decoding"], facts["lengths"]
        self.texts = PlainTexts(Codec.load(path), self.options)
        self._file = _File(path / "model.tflite", threads)

    def __call__(self, texts: Sequence[str]) -> list[Scored]:
        """The best translation of each text."""
        return [row[0] for row in self.n_best(texts)]

    def n_best(self, texts: Sequence[str]) -> list[list[Scored]]:
        """Up to `num_hypotheses` translations of each text, best first; at least one."""
        texts = as_list("texts", texts)
        self.texts.require_tags(texts)
        return list(map(self._of_text, texts))

    def score(self, texts: Sequence[str], translations: Sequence[str]) -> list[PairScore]:
        """The model's score of a given translation of each text; 0 for a pair of empty texts."""
        texts, translations = as_list("texts", texts), as_list("translations", translations)
        if len(texts) != len(translations):
            raise InputError(
                f"expected as many translations as texts, got {len(translations)} translations and "
                f"{len(texts)} texts."
            )
        self.texts.require_tags(texts)
        return [self._of_pair(*pair) for pair in zip(texts, translations, strict=True)]

    def _of_text(self, text: str) -> list[Scored]:
        parts = self.texts.parts(text)
        return joined(parts, [self._of_part(part.text) for part in parts])

    def _of_part(self, text: str) -> list[Scored]:
        source = self.texts.read(text)
        return self._searched(source) if source.ids else [Scored(source.copy, 0.0)]

    def _searched(self, source: Source) -> list[Scored]:
        found = self._run("search", source=source.ids)
        texts = self.texts.written(found["ids"].tolist(), source)
        pairs = zip(texts, found["scores"].tolist(), strict=True)
        rows = [Scored(text, score) for text, score in pairs if score > NOTHING]
        if self.options["distinct"]:
            best: dict[str, Scored] = {}
            for row in rows:
                best.setdefault(row.text, row)
            rows = list(best.values())
        return rows[: self.options["num_hypotheses"]] or [Scored("", 0.0)]

    def _of_pair(self, text: str, translation: str) -> PairScore:
        source, target = self.texts.read_pair(text, translation)
        if max(len(source), len(target)) < 2:
            return PairScore(0.0, 0.0)
        total = float(self._run("score", source=source, target=target)["log_probabilities"].sum())
        offset = self.options["length_penalty_offset"]
        ratio = (offset + len(target)) / (offset + 1)
        return PairScore(total / ratio ** self.options["length_penalty"], total)

    def _run(self, name: str, **rows: Sequence[int]) -> dict[str, np.ndarray]:
        """Runs the signature of the smallest length that has room for all rows of ids."""
        longest = max(map(len, rows.values()))
        length = next(length for length in self.lengths if length >= longest)
        padded = {key: np.zeros((1, length), np.int32) for key in rows}
        for key, row in rows.items():
            padded[key][0, : len(row)] = row
        return self._file.run(f"{name}_{length}", padded)


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

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs of a signature by name."""
        of_inputs = {}
        for name, values in inputs.items():
            of_inputs[name] = self._model.create_input_buffer_by_name(signature, name)
            of_inputs[name].write(values)
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


def as_list(name: str, texts: Sequence[str]) -> list[str]:
    """Checks texts, and makes a list of them; `name` is for the error."""
    items: list[Any] = [None] if isinstance(texts, str) else list(texts)
    if not all(isinstance(item, str) for item in items):
        raise InputError(f"expected a list of {name}, got {texts!r:.80}.")
    return items


def main(folder: str, translations: str = "") -> None:
    """Translates the lines of stdin, or scores a file of their translations."""
    model = Model(folder)
    texts = _lines(sys.stdin.buffer, STDIN)
    results: Sequence[Any]
    if translations:
        with open(translations, "rb") as file:
            results = model.score(texts, _lines(file, translations))
    else:
        results = [{"translation": row.text, "score": row.score} for row in model(texts)]
    for row in results:
        row = row._asdict() if translations else row
        line = json.dumps(row, ensure_ascii=False)
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")


def _lines(file: Any, name: str) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines_of(chunks_of(file), name)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--translations", default="", help="file of translations to score")
    own_folder = pathlib.Path(sys.argv[0]).resolve().parent
    parser.add_argument("--folder", default=own_folder, help="exported folder; default: its own")
    words = parser.parse_args()
    # LiteRT writes notices about kinds of processors to stderr. Python's own messages stay.
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        main(words.folder, words.translations)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed: pip install ai-edge-litert sentencepiece")
    except (InputError, TextError, OSError) as error:
        sys.exit(f"error: {error}")
