"""Counts the terms that translations have if a model reads them, beside terms as constraints.

    D=$TF_TRANSFORMER_DATA/tatoeba_en_de
    for rate in 0 0.4; do
        python train.py --run_dir runs/terms_$rate --train.init_from pretrained/tatoeba-en-de \
            --data.train_source $D/train.en --data.train_target $D/train.de \
            --data.valid_source $D/valid.en --data.valid_target $D/valid.de \
            --data.augment.terms $rate --data.augment.join 0.05 --data.augment.names 0.1 \
            --data.augment.copy 0.08 --data.augment.typography 0.04 --data.augment.lower 0.04 \
            --data.augment.end_mark 0.04 --train.steps 4500 --train.warmup_steps 300 \
            --train.learning_rate 0.5 --train.precision mixed_bfloat16 \
            --train.validate_every 500 --decode.average 4
    done
    python -m research.inline_terms --runs runs/terms_0,runs/terms_0.4 --training $D/train \
        --test $D/test

Each run is a row with `decode.terms_as constraint`, and a run that was trained with
`data.augment.terms` is also a row with `text` and one with `both`. The terms are those of
`research.terms`: nouns whose translation stands in the reference. In a second test each of these
nouns gets the translation of another noun, which no model would choose, so there are no references.
"""

import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu, first_lines
from research.terms import glossary, has_terms, partners
from tf_transformer.commands import command_line
from tf_transformer.data.augmentation.inline_terms import same_stem
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.terms import Term, units

END_MARKS = ".!?"


def has_forms(terms: Sequence[Term], translation: str) -> list[bool]:
    """For each term, whether its target or another form of it stands in the translation.

    Example:
        >>> has_forms([Term("dog", "Hund"), Term("cat", "Katze")], "Zwei Hunde rennen.")
        [True, False]
    """
    free, found = units(translation), []
    for term in terms:
        form = next((unit for unit in free if same_stem(unit, term.target)), None)
        found.append(form is not None)
        if form is not None:
            free.remove(form)
    return found


def others(terms: Sequence[Term], nouns: Sequence[str], draws: random.Random) -> list[Term]:
    """The terms with other translations, which are no form of their own."""
    changed = []
    for term in terms:
        noun = draws.choice(nouns)
        while same_stem(noun, term.target):
            noun = draws.choice(nouns)
        changed.append(Term(term.source, noun))
    return changed


def share(values: Sequence[bool]) -> float:
    """The part of true values, in percent."""
    return round(100 * sum(values) / len(values), 1)


def rounded_bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """BLEU with two decimals."""
    return round(bleu(outputs, references) or 0, 2)


def measured(
    translator: Translator, cases: Sequence[tuple[str, str, list[Term]]], nouns: Sequence[str]
) -> dict[str, Any]:
    """The columns of a translator: with terms that fit, and with terms that do not."""
    texts, references, fitting = (list(column) for column in zip(*cases, strict=True))
    draws = random.Random(0)
    strange = [others(terms, nouns, draws) for terms in fitting]
    row: dict[str, Any] = {
        "bleu_without": rounded_bleu([x.text for x in translator(texts)], references)
    }
    for name, terms in (("", fitting), ("_other", strange)):
        lines = ["\n".join(map("\t".join, of_text)) for of_text in terms]
        outputs = [x.text for x in translator(texts, terms=lines)]
        exact = [x for case in zip(texts, terms, outputs, strict=True) for x in has_terms(*case)]
        forms = [x for case in zip(terms, outputs, strict=True) for x in has_forms(*case)]
        row |= {f"exact{name}": share(exact), f"form{name}": share(forms)}
        ends = zip(texts, outputs, strict=True)
        behind = [out[-1:] not in END_MARKS for text, out in ends if text[-1] in END_MARKS]
        row[f"behind{name}"] = share(behind)
        if not name:
            row["bleu_with"] = rounded_bleu(outputs, references)
            row["time"] = _time_ratio(translator, texts, lines)
    return row


def _time_ratio(translator: Translator, texts: list[str], terms: list[str]) -> float:
    """The time with terms by that without: the median of three pairs of runs."""
    ratios = []
    for _ in range(3):
        times = []
        for given in (terms, None):
            start = time.perf_counter()
            translator(texts, terms=given)
            times.append(time.perf_counter() - start)
        ratios.append(times[0] / times[1])
    return round(statistics.median(ratios), 2)


def main(runs: str, training: str, test: str, lines: int = 1000, output: str = "") -> None:
    """Prints a row for each run and way.

    Args:
        runs: folders of runs from English to German, with commas between them.
        training: their training text without the ending, for train.en and train.de.
        test: a test set without its ending.
        lines: how many of its lines.
        output: result file to write, for example research/results/inline_terms.json.
    """
    sides = [read_texts(f"{training}.{side}")[0] for side in ("en", "de")]
    known = partners(zip(*sides, strict=True))
    nouns = sorted(known.values())
    texts, references = (first_lines(f"{test}.{side}", lines) for side in ("en", "de"))
    pairs = zip(texts, references, strict=True)
    cases = [(*pair, terms) for pair in pairs if (terms := glossary(*pair, known))]
    rows = []
    for run_dir in runs.split(","):
        learned = Run.load(run_dir).config.data.augment.terms
        for way in ("constraint", "text", "both") if learned else ("constraint",):
            translator = Translator.from_run(run_dir, terms_as=way)
            row: dict[str, Any] = {"run": run_dir, "terms_as": way}
            row["bleu_of_all"] = rounded_bleu([x.text for x in translator(texts)], references)
            rows.append(row | measured(translator, cases, nouns))
    print(of_rows(rows, left=2))
    summary = {"lines": len(cases), "terms": sum(len(terms) for _, _, terms in cases)}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


if __name__ == "__main__":
    command_line.run(main)
