"""Repeats the scores in the tables with the trained models of pretrained/: make scores.

    python -m benchmarks.translations.repeated

It reads the result files that `benchmarks.translations.scores` has written for these models, and
translates each test set with the first search of the file. The corpora are in the data folder,
$TF_TRANSFORMER_DATA. Test sets that `split_text` or `moses_text` has made are made again.
"""

import dataclasses
import os
import pathlib
import shlex
import time

from benchmarks.figures.blocks import BY_PRETRAINED
from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations import moses_text, split_text
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError

LANGUAGES = ("en", "de")
BUILD = pathlib.Path("build/test_sets")


@dataclasses.dataclass(frozen=True)
class Row:
    """A score in a table, and how to repeat it.

    Attributes:
        name: name of the result file.
        run_dir: folder of the trained model.
        source: file of sentences, relative to the data folder.
        reference: file of their translations, relative to the data folder.
        beam: beam size of the search.
        bleu: the score in the table.
        tokenize: the tokenization of sacreBLEU.
    """

    name: str
    run_dir: str
    source: str
    reference: str
    beam: int
    bleu: float
    tokenize: str = "13a"


def main(names: list[str] | None = None) -> None:
    """Prints a table of the stored scores and the scores now.

    Args:
        names: the result files, like tatoeba_unusual; all when not given.

    Raises:
        InputError: without the data folder or a file in it, or when a score differs by 0.1 or more.
    """
    data = os.environ.get("TF_TRANSFORMER_DATA", "")
    if not data:
        raise InputError("$TF_TRANSFORMER_DATA must be the folder of the corpora, and is not set.")
    rows = [row for row in stored() if names is None or row.name in names]
    found = [repeated(row, pathlib.Path(data)) for row in rows]
    print(of_rows(found, left=1))
    if wrong := [row["result"] for row in found if abs(row["BLEU now"] - row["BLEU"]) >= 0.1]:
        raise InputError(f"scores have changed by 0.1 or more: {', '.join(wrong)}.")


def stored() -> list[Row]:
    """The scores of the models in pretrained/."""
    rows = []
    for name in BY_PRETRAINED:
        result = results.read(name)
        words = shlex.split(result["command"])[3:]  # after python -m benchmarks.translations.scores
        options = dict(zip(words[::2], words[1::2], strict=True))
        paths = (options[f"--{side}"].partition("/")[2] for side in ("source", "reference"))
        first = result["measurements"][0]
        tokenize = options.get("--tokenize", "13a")
        rows.append(Row(name, options["--run_dir"], *paths, first["beam"], first["bleu"], tokenize))
    return rows


def repeated(row: Row, data: pathlib.Path) -> results.Row:
    """Translates and scores a test set.

    Args:
        row: the score in the table.
        data: the data folder.
    """
    import sacrebleu

    from tf_transformer.inference.translator import Translator

    start = time.monotonic()
    texts, references = (
        first_lines(str(test_file(path, data)), 10**9) for path in (row.source, row.reference)
    )
    translator = Translator.from_run(results.ROOT / row.run_dir, beam_size=row.beam, average=1)
    hypotheses = [prediction.text for prediction in translator(texts)]
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=row.tokenize).score
    return {
        "result": row.name,
        "sentences": len(texts),
        "BLEU": row.bleu,
        "BLEU now": round(bleu, 2),
        "seconds": round(time.monotonic() - start),
    }


def test_file(path: str, data: pathlib.Path) -> pathlib.Path:
    """The file of a test set, which is made if the data folder does not have it."""
    folder = pathlib.PurePath(path).parent.name
    if (data / path).is_file() or folder not in MADE:
        return data / path
    made = BUILD / path
    if not made.is_file():
        MADE[folder](data, made.parent)
    return made


def divide_off(data: pathlib.Path, to: pathlib.Path) -> None:
    """Writes the test set that the training of Tatoeba has divided off."""
    sides = (str(data / to.name / f"all.{language}") for language in LANGUAGES)
    split_text.main(*sides, to=str(to))


def tokenise(data: pathlib.Path, to: pathlib.Path) -> None:
    """Writes the lower-cased, tokenised test set of Multi30k."""
    to.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        file = data / "multi30k" / f"test_2016_flickr.{language}"
        moses_text.prepare_file(file, to / file.name, moses_text.preparation(language))


MADE = {"tatoeba_en_de": divide_off, "multi30k_lc": tokenise}  # by folder


if __name__ == "__main__":
    command_line.run(main)
