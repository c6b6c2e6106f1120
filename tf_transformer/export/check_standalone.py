"""What checks of folders that translate without TensorFlow have in common; see `standalone.py`."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tf_transformer.config import DecodeConfig, Quantization
from tf_transformer.export import metadata
from tf_transformer.export.check import sentences_for
from tf_transformer.export.standalone import ARCHIVE
from tf_transformer.files.writing import as_lines, one_line
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.kept_spans import spans

# Largest fraction of different translations. Both systems may decide near ties differently, and a
# model with little training has many near ties.
MAX_DIFFERENT = 0.5


class Different(NamedTuple):
    """A sentence with another translation in a folder than in its run, and both scores."""

    sentence: str
    of_run: tuple[str, float]
    of_folder: tuple[str, float]


def write_checked(
    run: Run,
    translator: Translator,
    folder: pathlib.Path,
    quantization: Quantization,
    write: Callable[..., None],
    check: Callable[..., str],
) -> str:
    """Writes and checks the folder of a run's translator; returns the summary of the check.

    Rounded weights change scores. The same weights in float32 show first that the rest is right.
    """
    facts = metadata.describe(run, translator)
    sentences = sentences_for(run, translator)
    for stored in dict.fromkeys(("float32", quantization)):
        shutil.rmtree(folder, ignore_errors=True)
        write(translator, folder, stored, facts)
        summary = check(folder, translator, sentences, stored)
    return summary


def compared(
    folder: pathlib.Path, translator: Translator, sentences: Sequence[str], tolerance: float
) -> tuple[list[Different], str]:
    """Translates in a fresh process; returns the different translations, and a summary.

    Raises a `RuntimeError` for a lost span, and when the scores of the translator's translations
    differ by more than the tolerance; see `difference`.
    """
    best = [(one_line(row.text), row.score) for row in translator(sentences)]
    texts = [text for text, _ in best]
    others = [(one_line(row["translation"]), row["score"]) for row in run(folder, sentences)]
    require_spans(translator.config, sentences, [text for text, _ in others])
    scores = [pair.score for pair in translator.score(sentences, texts)]
    given = run(folder, sentences, "translations", as_lines(texts))
    rescored = [row["score"] for row in given]
    of_given = list(map(difference, scores, rescored))
    n = max(range(len(sentences)), key=of_given.__getitem__)
    if of_given[n] > tolerance:
        raise RuntimeError(
            f"the export differs from the run it came from. Source: {sentences[n]!r}; translation: "
            f"{texts[n]!r}; its score in the run: {scores[n]:.4f}, in the export: "
            f"{rescored[n]:.4f}. The tolerance is {tolerance}."
        )
    rows = map(Different, sentences, best, others)
    different = [row for row in rows if row.of_run[0] != row.of_folder[0]]
    return different, (
        f"{len(different)} of {len(sentences)} translations differ from the run, scores of the "
        f"same translations by at most {of_given[n]:.1e}"
    )


def difference(score: float, other: float) -> float:
    """The relative difference of two scores; absolute for scores near 0."""
    return abs(score - other) / max(1.0, abs(score))


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
