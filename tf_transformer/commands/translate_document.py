"""Translates a document into a document of its format, for translate.py."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from tf_transformer.commands.notice_report import NoticeReport
from tf_transformer.config import DType
from tf_transformer.documents import Options, read_document, same_format, translated
from tf_transformer.errors import InputError
from tf_transformer.files.outputs import is_stream, require_free, write_output
from tf_transformer.files.streaming import SentenceProgress
from tf_transformer.files.writing import one_line
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run, direction_of
from tf_transformer.text.terms import read_terms


def translate_document(
    run_dir: str,
    path: str,
    output: str,
    overwrite: bool,
    target_language: str,
    retranslate: bool,
    terms: str,
    dtype: DType,
    decode_options: Mapping[str, Any],
) -> None:
    """Translates a document into a new file of its format, and reports on stderr."""
    if not output or not (is_stream(output) or same_format(path, output)):
        ending = os.path.splitext(path)[1]
        raise InputError(
            f"expected --output with the ending {ending}, because a translated document has the "
            f"format of its input; got {output or 'none'}."
        )
    run = Run.load(run_dir, **decode_options)
    given = {name: value for name, value in decode_options.items() if value is not None}
    run = Run.load(run_dir, **run.document_options() | given)
    require_free([output], [*filter(None, [path, terms]), *run.files()], overwrite)
    for_all = {"terms": read_terms(terms)} if terms else {}
    source, target = direction_of(run.config) or ("", "")
    document = read_document(path, Options(source, target_language or target, retranslate))

    import_tensorflow()
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    predictor = load_predictor(run, dtype)
    report, texts = NoticeReport(predictor), list[str]()

    def translate(new: list[str]) -> list[str]:
        texts.extend(new)
        with SentenceProgress(len(new)) as bar:
            given = {name: [value] * len(new) for name, value in for_all.items()}
            n_best = predictor.n_best(new, progress=bar.add, **given)
            bar.catch_up(len(new))
        report.add(n_best)
        return [one_line(row[0].text) for row in n_best]

    content, count = translated(document, translate)
    write_output(output, content, overwrite)
    at_end = f"; {count:,} lost tags, which stand at their ends" * bool(count)
    sys.stderr.write(report.text(texts) + f"{output}: {len(texts):,} texts translated{at_end}\n")


def refuse_options_of_lines(path: str, options: Mapping[str, Any]) -> None:
    """Raises an `InputError` if options are given that need lines, and not a document."""
    if wrong := [f"--{name}" for name, value in options.items() if value]:
        raise InputError(f"{path} is a document, and {', '.join(wrong)} needs lines.")
