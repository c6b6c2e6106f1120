"""Scores a run on the set of `stranger`: a table of classes.

    python -m benchmarks.translations.stranger_scores --run_dir runs/mine --lines build/set.jsonl

For each class, the table has BLEU, chrF, the ratio of chrF to that of the plain lines, the share of
the spans that the translations have, and the numbers of loops and of empty translations.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.stranger import Line, read
from tf_transformer.commands import command_line

PLAIN = "plain"
_STUTTER = re.compile(r"(.{1,12}?)\1{4,}")
_REPEATED = 3  # times that a loop has the same two words


def main(
    run_dir: str,
    lines: str,
    decode: Mapping[str, Any] = MappingProxyType({}),
    output: str = "",
    texts: str = "",
) -> None:
    """Prints the scores of all classes, and of the kinds of classes with several.

    Args:
        run_dir: a trained run's folder.
        lines: the set, a file that `stranger` has written.
        decode: options of the search, such as {split: none}; others are those of the run.
        output: result file to write, like benchmarks/results/stranger.json.
        texts: file for the translations, one per line; empty: none.
    """
    from tf_transformer.files.writing import write_whole
    from tf_transformer.inference.translator import Translator

    rows = read(lines)
    translator = Translator.from_run(run_dir, **decode)
    translations = [prediction.text for prediction in translator([row.source for row in rows])]
    if texts:
        write_whole(texts, "".join(f"{' '.join(text.split())}\n" for text in translations))
    classes = scored(rows, translations, [row.group for row in rows])
    kinds = [f"{row.group}: {row.kind}" if row.kind != row.group else "" for row in rows]
    of_kinds = scored(rows, translations, kinds, relative_to=classes[0]["chrf"])
    print(of_rows(classes, left=1))
    print(of_rows(of_kinds, left=1))
    packages = ("tensorflow", "keras", "sacrebleu")
    results.save(output, classes, packages, summary={"decode": dict(decode), "kinds": of_kinds})


def scored(
    rows: Sequence[Line],
    translations: Sequence[str],
    names: Sequence[str],
    relative_to: float | None = None,
) -> list[dict[str, Any]]:
    """The scores of groups of lines.

    Args:
        rows: the lines of the set.
        translations: one per line.
        names: the group of each line; "": none.
        relative_to: chrF that the others are divided by; None: chrF of the first group.

    Returns:
        a row of scores for each group, in the order of the groups.
    """
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(filter(None, names)):
        members = [
            (row, text)
            for row, text, own in zip(rows, translations, names, strict=True)
            if own == name
        ]
        scores = _scores(*zip(*members, strict=True))
        relative_to = relative_to or scores["chrf"]
        scores["ratio"] = round(scores["chrf"] / relative_to, 3) if relative_to else None
        found.append({"class": name, **scores})
    return found


def _scores(rows: Sequence[Line], translations: Sequence[str]) -> dict[str, Any]:
    import sacrebleu

    references = [[row.target for row in rows]]
    kept = [
        span in text for row, text in zip(rows, translations, strict=True) for span in row.spans
    ]
    pairs = list(zip(rows, translations, strict=True))
    return {
        "lines": len(rows),
        "bleu": round(sacrebleu.corpus_bleu(list(translations), references).score, 2),
        "chrf": round(sacrebleu.corpus_chrf(list(translations), references).score, 2),
        "spans_kept": round(sum(kept) / len(kept), 3) if kept else None,
        "loops": sum(is_loop(text, row.target) for row, text in pairs),
        "empty": sum(not text.strip() for text in translations),
    }


def is_loop(text: str, reference: str) -> bool:
    """Whether a translation repeats itself where its reference does not.

    It has the same two words three times or more, or the same few characters five times in a row.

    Example:
        >>> is_loop("die Förderung der Förderung der Förderung der", "Ein Haus.")
        True
        >>> is_loop("ja ja ja ja", "ja ja ja ja")
        False
    """
    stutter = _STUTTER.search(text)
    if stutter and stutter[0].strip() not in reference:
        return True
    pairs, expected = _two_words(text), _two_words(reference)
    return any(count >= _REPEATED and count > expected[two] for two, count in pairs.items())


def _two_words(text: str) -> Counter[tuple[str, str]]:
    words = text.split()
    return Counter(itertools.pairwise(words))


if __name__ == "__main__":
    command_line.run(main)
