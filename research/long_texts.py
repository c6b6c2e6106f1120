"""chrF of texts of several sentences: sentence by sentence, with `--split sentences`, and whole.

    python -m research.long_texts --run_dirs pretrained/tatoeba-en-de \
        --source t.en --reference t.de

Lines of the test set that follow one another are joined to texts. The reference of a text joins
those of its lines.
"""

import itertools
import random

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line


def main(
    run_dirs: str,
    source: str,
    reference: str,
    sentences: int = 1000,
    lines: int = 5,
    most_lines: int = 0,
    output: str = "",
) -> None:
    """Prints a table of scores.

    Args:
        run_dirs: folders of runs, with commas between them.
        source: file of sentences.
        reference: file of their translations.
        sentences: first lines of the files that are used.
        lines: lines in a text.
        most_lines: texts have a random number of lines, from `lines` to this. 0: all have `lines`.
        output: result file to write, for example research/results/long_texts.json.
    """
    import sacrebleu

    from tf_transformer.inference.translator import Translator

    texts, references = (first_lines(path, sentences) for path in (source, reference))
    metric = sacrebleu.CHRF()
    drawn, starts = random.Random(1), [0]
    while starts[-1] < len(texts):
        starts.append(starts[-1] + drawn.randint(lines, most_lines or lines))

    def joined(items: list[str], space: str) -> list[str]:
        return [space.join(items[start:end]) for start, end in itertools.pairwise(starts)]

    rows: list[dict[str, str | float]] = []
    for run_dir in run_dirs.split(","):
        whole = Translator.from_run(run_dir, split="none")
        splitting = Translator.from_run(run_dir, split="sentences")
        alone = [best.text for best in whole(texts)]
        for name, space in (("space", " "), ("empty line", "\n\n")):
            ways = {
                "sentence by sentence": joined(alone, space),
                "--split sentences": [best.text for best in splitting(joined(texts, space))],
                "whole": [best.text for best in whole(joined(texts, space))],
            }
            for way, translations in ways.items():
                score = metric.corpus_score(translations, [joined(references, space)]).score
                equal = sum(map(str.__eq__, translations, ways["sentence by sentence"]))
                row: dict[str, str | float] = {"run": run_dir, "between": name, "way": way}
                rows.append(row | {"chrf": round(score, 2), "equal": equal / len(translations)})
    print(of_rows(rows, left=3))
    summary = {"sentences": len(texts), "lines": lines, "most_lines": most_lines or lines}
    summary |= {"signature": str(metric.get_signature())}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


if __name__ == "__main__":
    command_line.run(main)
