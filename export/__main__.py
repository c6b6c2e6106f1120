"""Exports a run for TF Serving: python -m export --run_dir runs/x --to served/x/1."""

import json
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tf_transformer import command_line
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

ODD_SENTENCES = ["", "  ", "?", "\U0001f44d\U0001f3fd שלום 日本語", "a\tb\x01", "word " * 300]
SCORE_TOLERANCE = 1e-3  # of scores; batches are padded differently, and rounding with them


def main(
    run_dir: str,
    to: str,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    average: int | None = None,
) -> None:
    """Writes a SavedModel that takes and gives raw strings, and checks it before it counts.

    The new model is loaded into a session in a fresh process, as a server does, and must
    translate sample sentences as translate.py does. Only then it gets its final name.

    Args:
        run_dir: the run's folder.
        to: the folder to make, for TF Serving .../<model>/<version>.
        beam_size: hypotheses kept a sentence; the run's own when not given.
        length_penalty: exponent of the length penalty; the run's own when not given.
        average: how many of the newest checkpoints to average; the run's own when not given.
    """
    from tf_transformer.translator import Translator

    final = pathlib.Path(to)
    if final.exists():
        raise InputError(f"{final} exists; give --to a new version, like {_next_version(final)}.")
    translator = Translator.from_run(
        run_dir, beam_size=beam_size, length_penalty=length_penalty, average=average
    )
    samples = (pathlib.Path(run_dir) / "samples.txt").read_text("utf-8").split("\n")[:-1]
    # Not a number, so that a server that watches the parent folder takes no notice of it.
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        translator.save(partial)
        check(partial, translator, samples + ODD_SENTENCES)
        partial.rename(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"exported {final}: {len(samples + ODD_SENTENCES)} sentences checked in a session")


def check(saved_model: pathlib.Path, translator: "Translator", sentences: list[str]) -> None:
    """Compares a SavedModel, run in a fresh process, with the translator it came from.

    Raises:
        RuntimeError: when the process fails or any translation or score differs.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    process = subprocess.run(
        [sys.executable, str(program), str(saved_model)],
        input="".join(sentence + "\n" for sentence in sentences).encode("utf-8"),
        capture_output=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"the export does not run in a session:\n{process.stderr.decode()}")
    served = [json.loads(line) for line in process.stdout.decode("utf-8").split("\n")[:-1]]
    for sentence, expected, found in zip(sentences, translator(sentences), served, strict=True):
        same_score = abs(expected.score - found["score"]) <= SCORE_TOLERANCE
        if expected.text != found["translation"] or not same_score:
            raise RuntimeError(
                f"the export differs from the run it came from. Source: {sentence!r}; "
                f"run: {expected.text!r} ({expected.score:.4f}); "
                f"export: {found['translation']!r} ({found['score']:.4f})."
            )


def _next_version(path: pathlib.Path) -> pathlib.Path:
    if not path.name.isdigit():
        return path / "1"
    taken = [int(p.name) for p in path.parent.iterdir() if p.name.isdigit()]
    return path.with_name(str(max(taken) + 1))


if __name__ == "__main__":
    command_line.run(main)
