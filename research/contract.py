"""Checks that an export gives the translations of its run.

    python -m research.contract --run_dir runs/mine --source test.en

Exports the run and calls all three signatures for all lines, in a session in a fresh process that
imports only tensorflow and tensorflow_text: one by one, in batches of 7 and 64, shuffled, and with
empty rows as a batching server adds them. Counts the strings that differ from those of translate.py
(for n_best and score: from the Python translator's), and compares the scores of equal strings.

With `--everything true`, the export has all options of texts: sentences, kept spans, the
probabilities of words and a second search. Two lines form a text, with a span in each, and all
texts have a glossary. translate.py also aligns the words, and the program counts the texts with a
link to no word.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import Comparison
from research.kept_spans import KINDS
from tf_transformer.commands import command_line
from tf_transformer.decoding import NEG_INF
from tf_transformer.export.check import Request, session
from tf_transformer.files.reading import read_lines
from tf_transformer.inference.inputs import WITH_INPUTS
from tf_transformer.inference.predictor import NBest
from tf_transformer.inference.translator import Translator

ROOT = pathlib.Path(__file__).parents[1]
PADDING = 5  # empty rows added to each batch of 7
EVERYTHING = {
    "split": "sentences",
    "keep": "common",
    "word_probabilities": True,
    "second_search": True,
}
GLOSSARY = "a\teine\nin\tinmitten\n"  # short words, which many texts have

Rows = list[dict[str, Any]]  # the outputs of each row, by name


class Batches(NamedTuple):
    """A way to divide rows into requests."""

    name: str
    order: list[int]
    size: int
    padding: int = 0  # empty rows added to each request


def main(
    run_dir: str,
    source: str,
    lines: int = 1000,
    num_hypotheses: int = 4,
    jit_compile: bool = False,
    parallel_batches: int = 1,
    everything: bool = False,
    output: str = "",
) -> None:
    """Prints for each signature and each way of batching how many strings differ.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        lines: how many of the file's lines.
        num_hypotheses: of the signature n_best.
        jit_compile: whether XLA compiles the export.
        parallel_batches: parts of a batch that the export searches at a time.
        everything: whether all options of texts are on.
        output: result file to write, for example research/results/contract.json.
    """
    raw = list(itertools.islice(read_lines(source), lines))
    chosen: dict[str, Any] = EVERYTHING if everything else {}
    raw = with_spans(raw) if everything else raw
    translator = Translator.from_run(run_dir, num_hypotheses=num_hypotheses, **chosen)
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model" / "1"
        options = ["--run_dir", run_dir, "--num_hypotheses", str(num_hypotheses)]
        options += ["--jit_compile", str(jit_compile).lower()]
        options += ["--parallel_batches", str(parallel_batches)]
        words = [f"--{name}={str(value).lower()}" for name, value in chosen.items()]
        python("-m", "export", "--to", str(model), *options, *words)
        stored = sum(file.stat().st_size for file in (model / "variables").iterdir())
        if everything:
            glossary = pathlib.Path(folder) / "glossary.tsv"
            glossary.write_text(GLOSSARY)
            links = pathlib.Path(folder) / "links.txt"
            words += ["--terms", str(glossary), "--alignments_output", str(links)]
        translated = python("translate.py", "--run_dir", run_dir, *words, stdin=b"\n".join(raw))
        texts = [line.decode("utf-8", "replace") for line in raw]
        lines_of_links = links.read_text().split("\n")[:-1] if everything else []
        rows_of = rows_of_everything if everything else expected_rows
        translations = translated.decode().split("\n")[: len(raw)]
        expected = rows_of(translator, texts, translations)
        rows: Rows = [
            {"signature": signature, "batches": batches.name}
            | compare(wanted, served(model, signature, texts, wanted, batches))._asdict()
            for signature, wanted in expected.items()
            for batches in ways(len(wanted))
        ]
    summary = {
        "sentences": len(raw),
        "comparisons": len(rows),
        "different": sum(row["different"] for row in rows),
        "scores_within": max(row["scores_within"] for row in rows),
        "wrong_links": wrong_links(texts, translations, lines_of_links),
        "variables_ratio": round(stored / (4 * translator.model.count_params()), 3),
    }
    print(of_rows(rows, left=2))
    print(f"variables: {stored:,} bytes, {summary['variables_ratio']} of 4 per parameter")
    results.save(output, rows, ("tensorflow", "tensorflow-text", "keras"), summary=summary)


def python(*words: str, stdin: bytes = b"") -> bytes:
    """The output of a command of this project."""
    program = [sys.executable, *words]
    return subprocess.run(program, cwd=ROOT, input=stdin, capture_output=True, check=True).stdout


def with_spans(lines: list[bytes]) -> list[bytes]:
    """Texts of two lines, each line with a span of a kind."""
    texts = [line.decode("utf-8", "replace") for line in lines if line.split()]
    kinds = itertools.cycle(KINDS.values())
    changed = [kind(text) for kind, text in zip(kinds, texts, strict=False)]
    return [" ".join(changed[n : n + 2]).encode() for n in range(0, len(changed), 2)]


def wrong_links(texts: list[str], translations: list[str], lines: list[str]) -> int:
    """How many lines of links such as 0-1 name a word that a text or its translation has not."""
    count = 0
    for text, translation, line in zip(texts, translations, lines, strict=bool(lines)):
        sizes = len(text.split()), len(translation.split())
        pairs = [tuple(map(int, link.split("-"))) for link in line.split()]
        count += any(word >= size for pair in pairs for word, size in zip(pair, sizes, strict=True))
    return count


def rows_of_everything(
    translator: Translator, texts: list[str], translated: list[str]
) -> dict[str, Rows]:
    """The outputs that the signatures with inputs should give for texts with `GLOSSARY`."""
    n_best = translator.n_best(texts, terms=[GLOSSARY] * len(texts))
    alone = expected_rows(translator, texts, translated, n_best)
    rows = {WITH_INPUTS[name]: alone[name] for name in WITH_INPUTS}
    for outputs, (best, *_) in zip(rows["with_inputs"], n_best, strict=True):
        outputs |= {"parts": best.parts, "warnings": " ".join(best.notices)}
        outputs |= {"word_probabilities": " ".join(map(str, best.word_probabilities))}
    return rows


def expected_rows(
    translator: Translator, texts: list[str], translated: list[str], n_best: NBest | None = None
) -> dict[str, Rows]:
    """The outputs that each signature should give for each text."""
    n_best = translator.n_best(texts) if n_best is None else n_best
    pairs = translator.score(texts, translated)
    return {
        "serving_default": [
            {"translation": text, "score": [row[0].score]}
            for text, row in zip(translated, n_best, strict=True)
        ],
        "n_best": [
            {
                "translations": [prediction.text for prediction in row],
                "scores": [prediction.score for prediction in row],
            }
            for row in n_best
        ],
        "score": [
            {"target": text, "score": [pair.score], "log_probability": [pair.log_probability]}
            for text, pair in zip(translated, pairs, strict=True)
        ],
    }


def ways(count: int) -> Iterator[Batches]:
    """The ways to divide `count` rows into requests."""
    in_order = list(range(count))
    shuffled = np.random.default_rng(1).permutation(count).tolist()
    yield Batches("one by one", in_order, 1)
    yield Batches("batches of 7", in_order, 7)
    yield Batches("batches of 64", in_order, 64)
    yield Batches("shuffled, 64", shuffled, 64)
    yield Batches(f"7 and {PADDING} of padding", in_order, 7, PADDING)


def served(
    model: pathlib.Path, signature: str, texts: list[str], rows: Rows, batches: Batches
) -> Rows:
    """The outputs of a signature for every row, in the order of the rows."""
    inputs = {"text": texts}
    if signature == "score":
        inputs = {"source": texts, "target": [row["target"] for row in rows]}
    if signature in WITH_INPUTS.values():
        inputs |= {"prefix": [""] * len(texts), "terms": [GLOSSARY] * len(texts)}
    starts = range(0, len(batches.order), batches.size)
    chunks = [batches.order[start : start + batches.size] for start in starts]
    requests = [
        Request(
            signature,
            {
                name: [values[row] for row in chunk] + [""] * batches.padding
                for name, values in inputs.items()
            },
        )
        for chunk in chunks
    ]
    found: Rows = [{}] * len(rows)
    with session(model) as process:
        process.load()
        process.send(requests)
        answers = process.outputs()
    for chunk, outputs in zip(chunks, answers, strict=True):
        for place, row in enumerate(chunk):
            found[row] = {name: values[place] for name, values in outputs.items()}
    return found


def compare(expected: Rows, found: Rows) -> Comparison:
    """Counts rows with other strings, and compares the scores of the others."""
    different, largest = 0, 0.0
    for ours, theirs in zip(expected, found, strict=True):
        if strings(ours) != strings(theirs):
            different += 1
        else:
            apart = np.subtract(numbers(ours), numbers(theirs))
            largest = max(largest, float(np.abs(apart).max()))
    return Comparison(different, largest)


def strings(row: dict[str, Any]) -> list[str]:
    """The translations that were found for a row, and what is told about them."""
    scores = row.get("scores", [0.0])
    texts = row.get("translations", [row.get("translation", "")])
    found = [text for text, score in zip(texts, scores, strict=True) if score != NEG_INF]
    if "parts" in row and "translation" in row:
        count = len(row["word_probabilities"].split())
        found += [f"{row['parts']} parts", row["warnings"], f"{count} words"]
    return found


def numbers(row: dict[str, Any]) -> list[float]:
    """The scores that were found for a row."""
    values = [row[name] for name in ("score", "log_probability", "scores") if name in row]
    return [value for value in np.hstack(values).tolist() if value != NEG_INF]


if __name__ == "__main__":
    command_line.run(main)
