r"""chrF of sentences by length: whole, and divided at clauses into parts of at most N tokens.

    python -m research.long_sentences --run_dir pretrained/tatoeba-en-de \
        --source newstest2013.en --reference newstest2013.de

Shows whether a model translates parts better than sentences longer than its training text.
"""

import itertools

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.inference.translator import Translator

WHOLE = 1024  # tokens: more than any sentence has
LONGEST = (WHOLE, 96, 64, 48, 32)


def main(
    run_dir: str,
    source: str,
    reference: str,
    sizes: tuple[int, ...] = (40, 55, 64, 80, WHOLE),
    lines: int = 150,
    output: str = "",
) -> None:
    """Prints a table of scores.

    Args:
        run_dir: folder of a run.
        source: file of sentences.
        reference: file of their translations.
        sizes: bounds of the classes of sentences, in tokens.
        lines: sentences of a class that are used, from the start of the file.
        output: result file to write, for example research/results/long_sentences.json.
    """
    import sacrebleu

    texts, references = (first_lines(path, 10_000) for path in (source, reference))
    metric = sacrebleu.CHRF()
    translators = [
        Translator.from_run(
            run_dir, split="sentences", max_source_length=longest, trained_source_length=0
        )
        for longest in LONGEST
    ]
    codec = translators[0].codec["source"]
    lengths = [len(codec.encode(text)) for text in texts]
    rows = []
    for first, end in itertools.pairwise(sizes):
        chosen = [n for n, length in enumerate(lengths) if first <= length < end][:lines]
        row: dict[str, str | float] = {"tokens": f"{first} to {end - 1}", "sentences": len(chosen)}
        for longest, translator in zip(LONGEST, translators, strict=True):
            outputs = translator([texts[n] for n in chosen])
            streams = [output.text for output in outputs], [[references[n] for n in chosen]]
            row[f"chrf_{longest}"] = round(metric.corpus_score(*streams).score, 2)
            row[f"parts_{longest}"] = round(sum(x.parts for x in outputs) / len(outputs), 2)
        rows.append(row)
    print(of_rows(rows, left=1))
    summary = {"signature": str(metric.get_signature())}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


if __name__ == "__main__":
    command_line.run(main)
