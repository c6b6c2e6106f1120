"""Whether an export keeps its word: python benchmarks/contract.py --run_dir R --source F.

Exports the run, asks every signature in a session, in a fresh process that imports only tensorflow
and tensorflow_text, for all lines of a file: in batches of 1, 7 and 64, in shuffled order, and with
padding rows as a batching server adds them. Prints for each how many strings differ from those
of translate.py (or hypotheses or pairs from the Python translator's) and how far scores are apart;
and the bytes of the stored variables against the number of parameters.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_transformer.commands import command_line
from tf_transformer.decoding import NEVER
from tf_transformer.export.check import in_session
from tf_transformer.files import read_lines
from tf_transformer.translator import Translator

ROOT = pathlib.Path(__file__).parents[1]
PADDING = 5  # empty rows added to each batch of 7

Rows = list[dict[str, Any]]  # a row's outputs by name


def main(run_dir: str, source: str, lines: int = 1000, num_hypotheses: int = 4) -> None:
    """Prints the tables.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        lines: how many of the file's lines.
        num_hypotheses: of the signature n_best.
    """
    raw = list(itertools.islice(read_lines(source), lines))
    translator = Translator.from_run(run_dir, num_hypotheses=num_hypotheses)
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model" / "1"
        options = ("--run_dir", run_dir, "--num_hypotheses", str(num_hypotheses))
        python("-m", "export", "--to", str(model), *options)
        stored = sum(file.stat().st_size for file in (model / "variables").iterdir())
        whole = 4 * translator.model.count_params()
        print(f"variables: {stored:,} bytes, {stored / whole:.3f} of 4 a parameter")
        translated = python("translate.py", "--run_dir", run_dir, stdin=b"\n".join(raw))
        texts = [line.decode("utf-8", "replace") for line in raw]
        expected = expected_rows(translator, texts, translated.decode().split("\n")[: len(raw)])
        for signature, rows in expected.items():
            print(f"{signature}, {len(rows):,} sentences")
            inputs = inputs_of(signature, texts, rows)
            for name, order, size, padding in ways(len(rows)):
                report(name, rows, ask(model, signature, inputs, order, size, padding))


def python(*words: str, stdin: bytes = b"") -> bytes:
    """What a command of this project prints."""
    program = [sys.executable, *words]
    return subprocess.run(program, cwd=ROOT, input=stdin, capture_output=True, check=True).stdout


def expected_rows(
    translator: Translator, texts: list[str], translated: list[str]
) -> dict[str, Rows]:
    """What each signature has to give for each text, the strings of translate.py first of all."""
    n_best = translator.n_best(texts)
    pairs = translator.score(texts, translated)
    return {
        "serving_default": [
            {"translation": text, "score": [row[0].score]}
            for text, row in zip(translated, n_best, strict=True)
        ],
        "n_best": [
            {"translations": [each.text for each in row], "scores": [each.score for each in row]}
            for row in n_best
        ],
        "score": [
            {"target": text, "score": [pair.score], "log_probability": [pair.log_probability]}
            for text, pair in zip(translated, pairs, strict=True)
        ],
    }


def inputs_of(signature: str, texts: list[str], rows: Rows) -> dict[str, list[str]]:
    """The inputs of all rows."""
    if signature == "score":
        return {"source": texts, "target": [row["target"] for row in rows]}
    return {"text": texts}


def ways(count: int) -> Iterator[tuple[str, list[int], int, int]]:
    """Name, order of the rows, rows of a batch, and rows of padding added to each."""
    in_order = list(range(count))
    shuffled = np.random.default_rng(1).permutation(count).tolist()
    yield "one by one", in_order, 1, 0
    yield "batches of 7", in_order, 7, 0
    yield "batches of 64", in_order, 64, 0
    yield "shuffled, 64", shuffled, 64, 0
    yield f"7 and {PADDING} of padding", in_order, 7, PADDING


def ask(
    model: pathlib.Path,
    signature: str,
    inputs: dict[str, list[str]],
    order: list[int],
    size: int,
    padding: int,
) -> Rows:
    """The outputs for every row, in the rows' own order."""
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    requests = [
        {
            "signature_name": signature,
            "inputs": {
                name: [texts[row] for row in chunk] + [""] * padding
                for name, texts in inputs.items()
            },
        }
        for chunk in chunks
    ]
    found: Rows = [{}] * len(order)
    for chunk, outputs in zip(chunks, in_session(model, *requests), strict=True):
        for place, row in enumerate(chunk):
            found[row] = {name: values[place] for name, values in outputs.items()}
    return found


def report(name: str, expected: Rows, found: Rows) -> None:
    """Prints a line: rows with other strings, and the largest difference of scores of the rest."""
    different, largest = 0, 0.0
    for ours, theirs in zip(expected, found, strict=True):
        if strings(ours) != strings(theirs):
            different += 1
        else:
            apart = np.subtract(numbers(ours), numbers(theirs))
            largest = max(largest, float(np.abs(apart).max()))
    print(f"  {name:24} different: {different:4}   scores within {largest:.1e}")


def strings(row: dict[str, Any]) -> list[str]:
    """The translations of a row that were found."""
    scores = row.get("scores", [0.0])
    texts = row.get("translations", [row.get("translation", "")])
    return [text for text, score in zip(texts, scores, strict=True) if score != NEVER]


def numbers(row: dict[str, Any]) -> list[float]:
    """The scores of a row that were found."""
    values = [row[name] for name in ("score", "log_probability", "scores") if name in row]
    return [value for value in np.hstack(values).tolist() if value != NEVER]


if __name__ == "__main__":
    command_line.run(main)
