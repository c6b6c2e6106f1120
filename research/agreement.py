"""Compares CTranslate2 with the run that its model was exported from.

    python -m research.agreement --run_dir runs/mine --source test.en

Exports the run in several forms, translates the same lines with each and with the run, and counts
the translations that differ. Then it lists those with the scores that both systems give both
translations, and the reason:

- tie: the run gives both the same score, within rounding;
- rounded weights: the smaller weights of the export prefer its own translation;
- search: both systems prefer the same translation, and one of the searches did not find it.

`float32, own ranking` is the result of `translate_batch` with the same length penalty: CTranslate2
divides by length^α where the run divides by ((5 + length) / 6)^α. The program of the export,
`run_in_ctranslate2.py` of the package, says how it ranks them.
"""

import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu, first_lines
from tf_transformer.commands import command_line
from tf_transformer.config import Quantization

if TYPE_CHECKING:
    from tf_transformer.export.run_in_ctranslate2 import Model
    from tf_transformer.inference.translator import Translator

TIE = 1e-3
FORMS: tuple[Quantization, ...] = ("float32", "int8", "bfloat16")
OWN_RANKING = "float32, own ranking"


class Difference(NamedTuple):
    """A line that two systems translate differently, with the scores of both in both systems."""

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
    run_dir: str,
    source: str,
    reference: str = "",
    sentences: int = 200,
    beam_size: int = 4,
    output: str = "",
) -> None:
    """Prints how many translations differ, with BLEU, and lists them.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        reference: file of their translations, for BLEU.
        sentences: how many of the file's lines.
        beam_size: hypotheses kept for each sentence.
        output: result file to write, for example research/results/agreement.json.
    """
    from tf_transformer.inference.translator import Translator

    texts = first_lines(source, sentences)
    references = first_lines(reference, sentences) if reference else []
    translator = Translator.from_run(run_dir, beam_size=beam_size)
    ours = [translation.text for translation in translator(texts)]
    rows, lists = [row("run", ours, ours, references)], {}
    for form, (theirs, apart) in translations(translator, texts, ours).items():
        rows.append(row(form, ours, theirs, references))
        lists[form] = apart
    print(of_rows(rows, left=1))
    for form, apart in lists.items():
        show(form, apart)
    summary = {"sentences": len(texts), "beam": beam_size}
    results.save(output, rows, ("tensorflow", "ctranslate2", "sacrebleu"), summary=summary)


def row(
    form: str, ours: Sequence[str], theirs: Sequence[str], references: Sequence[str]
) -> dict[str, Any]:
    """A row of the table."""
    different = sum(a != b for a, b in zip(ours, theirs, strict=True))
    return {"form": form, "different": different, "bleu": bleu(theirs, references)}


def translations(
    translator: "Translator", texts: list[str], ours: list[str]
) -> dict[str, tuple[list[str], list[Difference]]]:
    """The translations of each form of the export, and the differences from `ours`."""
    from tf_transformer.export import to_ctranslate2
    from tf_transformer.export.run_in_ctranslate2 import Model

    of_forms: dict[str, tuple[list[str], list[Difference]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            to_ctranslate2.write(translator, pathlib.Path(folder, form), form)
            model = Model(f"{folder}/{form}")
            theirs: dict[str, list[str]] = {form: [hypothesis.text for hypothesis in model(texts)]}
            if form == "float32":
                theirs[OWN_RANKING] = own_ranking(model, texts)
            for name, of_form in theirs.items():
                apart = differences(translator, model, texts, ours, of_form)
                of_forms[name] = (of_form, apart)
    return of_forms


def own_ranking(model: "Model", texts: Sequence[str]) -> list[str]:
    """The first hypothesis of each beam, as CTranslate2 ranks them."""
    beams = model.beams(model.texts.codec.encode_batch("source", texts))
    return [model.text(beam.hypotheses[0]) for beam in beams]


def differences(
    translator: "Translator",
    model: "Model",
    texts: Sequence[str],
    ours: Sequence[str],
    theirs: Sequence[str],
) -> list[Difference]:
    """The lines that are translated differently, with all four scores."""
    rows = [row for row in zip(texts, ours, theirs, strict=True) if row[1] != row[2]]
    if not rows:
        return []
    sources, *translations = map(list, zip(*rows, strict=True))
    scores = [
        [scored.score for scored in system.score(sources, column)]
        for system in (translator, model)
        for column in translations
    ]
    pairs = zip(*scores, strict=True)
    return [Difference(*row, (a, b), (c, d)) for row, (a, b, c, d) in zip(rows, pairs, strict=True)]


def show(form: str, apart: Sequence[Difference]) -> None:
    """Prints the lines that differ."""
    for line in apart:
        print(f"\n{form}: {line.reason()}\n  source: {line.source}")
        for name, text, place in (("run", line.ours, 0), (form, line.theirs, 1)):
            print(
                f"  {name}: {text}\n    score in the run {line.run_scores[place]:.5f}, "
                f"in the export {line.export_scores[place]:.5f}"
            )


if __name__ == "__main__":
    command_line.run(main)
