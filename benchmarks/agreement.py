"""Compares CTranslate2 with a run: python -m benchmarks.agreement --run_dir R --source F.

Exports a run for CTranslate2 in several forms, translates the same lines with each and with the
run, and prints how many translations differ; then those that differ with what both systems give
both translations, and why they differ:

- tie: the run gives both the same score, but for rounding;
- rounded weights: the export's smaller weights prefer its own translation;
- search: both prefer the same one, and one of the searches lost it on the way.

`float32, own choice` is what `translate_batch` gives with the same length penalty: CTranslate2
divides by length^α where the run divides by ((5 + length) / 6)^α. See run_in_ctranslate2.py.
"""

import itertools
import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tf_transformer.commands import command_line
from tf_transformer.config import Quantization
from tf_transformer.files import read_lines

if TYPE_CHECKING:
    from tf_transformer.export.run_in_ctranslate2 import Model
    from tf_transformer.translator import Translator

TIE = 1e-3
FORMS: tuple[Quantization, ...] = ("float32", "int8", "bfloat16")


class Difference(NamedTuple):
    """A line that two systems translate differently, and the score that each gives each."""

    source: str
    ours: str
    theirs: str
    run_scores: tuple[float, float]  # of ours and of theirs
    export_scores: tuple[float, float]

    def reason(self) -> str:
        """Why they differ."""
        if abs(self.run_scores[0] - self.run_scores[1]) <= TIE:
            return "tie"
        if (self.run_scores[0] > self.run_scores[1]) != (
            self.export_scores[0] > self.export_scores[1]
        ):
            return "rounded weights"
        return "search"


def main(
    run_dir: str, source: str, reference: str = "", sentences: int = 200, beam_size: int = 4
) -> None:
    """Prints the table and the lists.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        reference: file of their translations, for BLEU.
        sentences: how many of the file's lines.
        beam_size: hypotheses kept a sentence.
    """
    from tf_transformer.export import ctranslate2
    from tf_transformer.export.run_in_ctranslate2 import Model
    from tf_transformer.translator import Translator

    texts = first_lines(source, sentences)
    references = first_lines(reference, sentences) if reference else []
    translator = Translator.from_run(run_dir, beam_size=beam_size)
    ours = [each.text for each in translator(texts)]
    alpha = translator.config.length_penalty
    print(f"{len(texts)} sentences, beam {beam_size}, length penalty {alpha}")
    report("the run", ours, ours, references)
    lists = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            ctranslate2.write(translator, pathlib.Path(folder, form), form)
            model = Model(f"{folder}/{form}")
            theirs = [each.translation for each in model(texts)]
            report(form, ours, theirs, references)
            lists[form] = differences(translator, model, texts, ours, theirs)
            if form == "float32":
                theirs = own_choice(model, texts)
                report("float32, own choice", ours, theirs, references)
                lists["float32, own choice"] = differences(translator, model, texts, ours, theirs)
    for form, found in lists.items():
        show(form, found)


def first_lines(path: str, count: int) -> list[str]:
    """The first lines of a file; broken UTF-8 is replaced."""
    lines = itertools.islice(read_lines(path), count)
    return [line.decode("utf-8", "replace") for line in lines]


def own_choice(model: "Model", texts: Sequence[str]) -> list[str]:
    """The first hypothesis of each beam, as CTranslate2 sorts them."""
    sources = model.tokenizer.encode(list(texts), out_type=str)
    result = [""] * len(texts)
    for length, indices in model.by_length(sources).items():
        options = model.options(length)
        found = model.translator.translate_batch([sources[i] for i in indices], **options)
        for i, each in zip(indices, found, strict=True):
            result[i] = model.text(each.hypotheses[0])
    return result


def differences(
    translator: "Translator",
    model: "Model",
    texts: Sequence[str],
    ours: Sequence[str],
    theirs: Sequence[str],
) -> list[Difference]:
    """The lines translated differently, with all four scores."""
    rows = [row for row in zip(texts, ours, theirs, strict=True) if row[1] != row[2]]
    if not rows:
        return []
    sources, *translations = map(list, zip(*rows, strict=True))
    scores = [
        [each.score for each in system.score(sources, column)]
        for system in (translator, model)
        for column in translations
    ]
    pairs = zip(*scores, strict=True)
    return [Difference(*row, (a, b), (c, d)) for row, (a, b, c, d) in zip(rows, pairs, strict=True)]


def report(
    form: str, ours: Sequence[str], theirs: Sequence[str], references: Sequence[str]
) -> None:
    """Prints a row of the table."""
    different = sum(a != b for a, b in zip(ours, theirs, strict=True))
    row = f"  {form:22} different: {different:4}"
    if references:
        import sacrebleu

        row += f"   BLEU {sacrebleu.corpus_bleu(list(theirs), [list(references)]).score:.2f}"
    print(row, flush=True)


def show(form: str, found: Sequence[Difference]) -> None:
    """Prints the lines that differ."""
    for each in found:
        print(f"\n{form}: {each.reason()}\n  source: {each.source}")
        for name, text, place in (("run", each.ours, 0), (form, each.theirs, 1)):
            print(
                f"  {name}: {text}\n    score in the run {each.run_scores[place]:.5f}, "
                f"in the export {each.export_scores[place]:.5f}"
            )


if __name__ == "__main__":
    command_line.run(main)
