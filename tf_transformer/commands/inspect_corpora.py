"""Shows what corpora hold: tf-transformer inspect a.en b.de --output page.html."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_transformer.commands import command_line
from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data import corpora, detected_languages, near_texts
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_free, write_output
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.data.inspection import CorpusReport


def main(
    *files: LocalPath,
    run_dir: LocalPath = "",
    data: DataConfig = DataConfig(),
    test: Corpus = Corpus(),
    output: LocalPath = "inspection.html",
    overwrite: bool = False,
) -> None:
    """Shows what corpora hold, which faults they have, and which texts training and test share.

    Give two files, one file that holds both sides, the corpora as for training, or --run_dir. The
    command prints tables, and writes a page with examples and charts. Near texts, languages and
    charts need the extra `inspect`.

    Args:
        files: two text files, of which line n of one translates line n of the other; or one file
            that holds both sides.
        run_dir: folder of a run, whose corpora are read.
        data: the corpora, like --data.corpora, and --data.valid_source.
        test: a test set that is compared with the training text, like --test.path test.tsv.
        output: HTML file for the page.
        overwrite: replace an existing file.
    """
    data = _data_of(files, run_dir, data)
    corpora.check(data)
    located = corpora.in_folder(data)
    splits = {
        "training": corpora.training_corpora(located),
        "validation": corpora.validation_corpora(located),
        "test": () if test == Corpus() else (test,),
    }
    if splits["test"]:
        corpora.check_corpus(test)
    named = [corpus for listed in splits.values() for corpus in listed]
    paths = [path for x in named for path in (x.source, x.target, x.path) if path]
    require_free([output], paths, overwrite)

    from tf_transformer.data.inspection import inspect  # NumPy would slow --help
    from tf_transformer.visualization import charts
    from tf_transformer.visualization.corpus_page import corpus_page, tables

    has_near, has_languages = near_texts.is_available(), detected_languages.is_available()
    inspection = inspect(splits, located, has_near)
    languages = list(map(_languages, inspection.corpora)) if has_languages else []
    notes = []
    parts = {"near texts": has_near, "languages": has_languages, "charts": charts.is_available()}
    if missing := [name for name, is_there in parts.items() if not is_there]:
        notes.append(
            f"This does not show {' or '.join(missing)}, because a package is missing: pip install "
            "'tf_transformer[inspect]'."
        )
    if not splits["validation"]:
        notes.append("There is no separate validation text. Training holds out a part of its text.")
    print(*tables(inspection, languages), sep="\n\n", end="\n\n")
    print(*notes, sep="\n", end="\n" * bool(notes), file=sys.stderr)
    write_output(output, corpus_page(inspection, languages, "\n".join(notes)), overwrite)
    print(f"wrote {output}")


def _data_of(files: Sequence[str], run_dir: str, data: DataConfig) -> DataConfig:
    """The data options with the corpora that the command reads."""
    if bool(files) + bool(run_dir) + bool(data.corpora) != 1 or len(files) > 2:
        raise InputError(
            "expected two files of parallel text, one file that holds both sides, --run_dir, or "
            "corpora as for training, such as --data.corpora: one of them."
        )
    if run_dir:
        return Run.load(run_dir).config.data
    if files:
        is_pair = len(files) == 2
        corpus = Corpus(files[0], files[1]) if is_pair else Corpus(path=files[0])
        return corpora.with_languages(DataConfig(corpora=(corpus,)))
    return corpora.with_languages(data)


def _languages(report: "CorpusReport") -> list[Counter[str]]:
    """The languages of both sides, in a sample."""
    sides = zip(*report.sample, strict=True)
    return [detected_languages.detected_languages(texts) for texts in sides]


if __name__ == "__main__":
    command_line.run(main)
