"""Translates with a folder from `python -m export --format onnx`.

    python export/run_in_onnx.py FOLDER < sentences
    python export/run_in_onnx.py FOLDER --ids < lists

The first form prints one JSON object per line read: {"translation": ..., "score": ...}. In the
second form, each line read is a list of source ids, such as [17, 4, 2], and each line printed has
the `ids` and `scores` of all hypotheses. The program needs onnxruntime, sentencepiece and NumPy. It
does not import TensorFlow. It reads and writes texts as run_in_ctranslate2.py does.

model.onnx has the whole search:

- input `source`: int32 (B, S), ids of texts, each with the end id 2, then 0;
- output `ids`: int32 (B, N, L), the translations, best first, each with the end id, then 0;
- output `scores`: float32 (B, N), log-probabilities divided by the length penalty;
- output `log_probabilities`: float32 (B, N), nats.
"""

import json
import os
import pathlib
import runpy
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

USAGE = "usage: python export/run_in_onnx.py FOLDER [--ids] < SENTENCES"
PACKAGE = pathlib.Path(__file__).parents[1]
NOTHING = -1e8  # the score of a missing hypothesis is lower
END = 2  # the id of the end token
# Weights in int8 become float32 when the model is loaded. Without this option, onnxruntime also
# rounds the inputs of their products to int8.
IN_FLOAT32 = {"session.disable_quant_qdq": "1"}

plain = runpy.run_path(str(PACKAGE / "export" / "run_in_ctranslate2.py"))
Translation = plain["Translation"]


class Hypotheses(NamedTuple):
    """The hypotheses for a row of source ids, best first."""

    ids: list[list[int]]  # with the end token
    scores: list[float]  # log-probabilities divided by the length penalty
    log_probabilities: list[float]  # nats


class Model:
    """An exported folder, ready to translate strings on CPUs.

    Args:
        folder: path of the folder.
        threads: of a product; 0: one for each core.
        rounds_inputs: whether inputs of products with weights in int8 may become int8, too. Large
            models are then faster, and translations differ more.
    """

    def __init__(self, folder: str | os.PathLike, threads: int = 0, rounds_inputs: bool = False):
        import onnxruntime

        path = pathlib.Path(folder)
        self.options = json.loads((path / "metadata.json").read_text("utf-8"))["decoding"]
        self.texts = plain["Texts"](path, self.options)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        for name, value in () if rounds_inputs else IN_FLOAT32.items():
            options.add_session_config_entry(name, value)
        self.session = onnxruntime.InferenceSession(
            str(path / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, texts: Iterable[str]) -> list[Any]:
        """The best translation of each text."""
        return [row[0] for row in self.n_best(texts)]

    def n_best(self, texts: Iterable[str]) -> list[list[Any]]:
        """Up to `num_hypotheses` translations of each text, best first; at least one."""
        checked = self.texts.as_list("texts", texts)
        forms, sources, result = self.texts.prepared(checked)
        to_id, room = self.texts.source.processor.piece_to_id, self.options["max_source_length"] - 1
        searched = [i for i, pieces in enumerate(sources) if pieces]
        rows = [[*map(to_id, sources[i][:room]), END] for i in searched]
        for i, found in zip(searched, self.search(rows), strict=True):
            result[i] = self._written(found, forms[i] or str)
        return result

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypotheses]:
        """The hypotheses for rows of source ids. Rows of similar length share a batch."""
        found: dict[int, Hypotheses] = {}
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        for start in range(0, len(order), self.options["batch_size"]):
            batch = order[start : start + self.options["batch_size"]]
            padded = np.zeros((len(batch), max(len(sources[i]) for i in batch)), np.int32)
            for row, i in zip(padded, batch, strict=True):
                row[: len(sources[i])] = sources[i]
            names = ["ids", *Hypotheses._fields[1:]]
            for i, *fields in zip(batch, *self.session.run(names, {"source": padded}), strict=True):
                ids, *numbers = (field.tolist() for field in fields)
                found[i] = Hypotheses([[x for x in row if x] for row in ids], *numbers)
        return [found[i] for i in range(len(sources))]

    def _written(self, found: Hypotheses, form: Any) -> list[Any]:
        """The translations of hypotheses."""
        to_piece, rows = self.texts.target.processor.id_to_piece, []
        for ids, score in zip(found.ids, found.scores, strict=True):
            if score > NOTHING:
                rows.append(Translation(form(self.texts.text(to_piece(ids))), score))
        if self.options["distinct"]:
            rows = list({row.translation: row for row in reversed(rows)}.values())[::-1]
        return rows[: self.options["num_hypotheses"]] or [Translation("", 0.0)]


def main(folder: str, as_ids: bool = False) -> None:
    """Translates the lines of stdin, or searches for their lists of ids."""
    if not (pathlib.Path(folder) / "model.onnx").is_file():
        sys.exit(
            f"error: {folder} is not an exported folder on this machine. Make one: python -m "
            "export --format onnx."
        )
    text = runpy.run_path(str(PACKAGE / "files" / "text_lines.py"))
    try:
        model = Model(folder)
        lines = text["lines_of"](text["chunks_of"](sys.stdin.buffer), text["STDIN"])
        texts = [line.decode("utf-8", "replace") for line in lines]
        results = model.search(list(map(json.loads, texts))) if as_ids else model(texts)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed: pip install onnxruntime sentencepiece")
    except (text["TextError"], ValueError) as error:
        sys.exit(f"error: {error}")
    for row in results:
        line = json.dumps(row._asdict(), ensure_ascii=False)
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(f"{USAGE}\n\n{__doc__}")
    elif not words or words[0].startswith("-") or words[1:] not in ([], ["--ids"]):
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    else:
        main(os.path.expanduser(words[0]), words[1:] == ["--ids"])
