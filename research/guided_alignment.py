"""Compares word alignments by eflomal and by attention, with and without guided alignment.

    python -m research.guided_alignment --runs runs/plain,runs/guided --links all.links \
        --source gold.de --target gold.en --gold gold.links \
        --test_source test.de --test_reference test.en

The pairs of a gold standard are aligned by the attention of each run, and by eflomal, which has
aligned them as the last pairs of a longer text. Each layer of a run is measured by the mean of its
heads. A run with guided alignment is also measured by the head that has learned the links.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu
from research.gold_links import GoldLinks, agreement
from tf_transformer.commands import command_line
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.word_alignment import from_line


def main(
    runs: str,
    links: str,
    source: str,
    target: str,
    gold: str,
    test_source: str,
    test_reference: str,
    output: str = "",
) -> None:
    """Prints the alignment error rate of each system, and BLEU of each run.

    Args:
        runs: folders of runs, with commas between them.
        links: output of `tf-transformer align` for a text that ends with the gold pairs.
        source: file of the sources of the gold pairs.
        target: file of their targets.
        gold: file of their links, all of them sure, such as 0-0 1-2.
        test_source: file of sentences for BLEU.
        test_reference: file of their translations.
        output: result file to write, for example research/results/guided_alignment.json.
    """
    sources, targets, lines = read_texts(source, target, gold)
    gold_links = [GoldLinks(sure, sure) for sure in map(from_line, lines)]
    aligned = read_texts(links)[0][-len(lines) :]
    scores = agreement(list(map(from_line, aligned)), gold_links)
    rows: list[dict[str, Any]] = [{"system": "eflomal", "attention": "", **scores._asdict()}]
    test = read_texts(test_source, test_reference)
    for run_dir in runs.split(","):
        translations = [best.text for best in Translator.from_run(run_dir)(test[0])]
        of_run = {"system": run_dir, "bleu": round(bleu(translations, test[1]) or 0, 2)}
        for name, options in heads(run_dir):
            translator = Translator.from_run(run_dir, **options)
            found = [alignment.links() for alignment in translator.align(sources, targets)]
            scores = agreement(found, gold_links)
            rows.append(of_run | {"attention": name, **scores._asdict()})
    print(of_rows(rows, left=2))
    summary = {"gold_pairs": len(lines), "test_pairs": len(test[0])}
    results.save(output, rows, ("tensorflow", "keras", "eflomal", "sacrebleu"), summary=summary)


def heads(run_dir: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The names of layers and heads, and the options that choose them."""
    config = Run.load(run_dir).config
    for layer in range(config.model.decoder.num_layers):
        yield f"layer {layer + 1}", {"alignment_layer": layer, "alignment_head": -1}
    if config.train.guided_alignment_weight:
        yield "guided head", {}


if __name__ == "__main__":
    command_line.run(main)
