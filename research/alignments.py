"""Compares the word alignments of a model of the generated corpus with gold alignments.

    python -m research.alignments --run_dir runs/demo \
        --output research/results/alignments.json

The test pairs are aligned by the cross-attention of each decoder layer, averaged over its heads.
Links between words of the same number, day, month or year are right
(`research.gold_links.generate_links`).
"""

from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from research.gold_links import GoldLinks, agreement, generate_links
from tf_transformer.commands import command_line
from tf_transformer.config import DataConfig
from tf_transformer.data.readers.generated import TEST_PAIRS, generated_splits
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run


def main(run_dir: str, output: str = "") -> None:
    """Prints the alignment error rate of each layer, for all pairs and for dates alone.

    Args:
        run_dir: a trained run of the generated corpus.
        output: result file to write, for example research/results/alignments.json.
    """
    translator = Translator.from_run(run_dir)
    data = Run.load(run_dir).config.data
    test, gold = generated_splits(data)[2], gold_links(data)
    dates = [i for i, target in enumerate(test["target"]) if " " in target]
    rows: list[dict[str, Any]] = []
    for layer in range(translator.model.config.decoder.num_layers):
        aligned = translator.align(test["source"], test["target"], layer)
        links = [alignment.links() for alignment in aligned]
        for name, chosen in (("all", range(len(links))), ("dates", dates)):
            scores = agreement([links[i] for i in chosen], [gold[i] for i in chosen])
            rows.append({"layer": layer + 1, "pairs": name, **scores._asdict()})
    print(of_rows(rows, left=2))
    summary = {"test_pairs": len(test), "dates": len(dates)}
    results.save(output, rows, ("tensorflow", "keras"), summary=summary)


def gold_links(data: DataConfig) -> list[GoldLinks]:
    """The links of the test pairs of `generated_splits`."""
    total = sum(map(len, generated_splits(data)))
    return generate_links(total, data.source_language, data.target_language, seed=0)[:TEST_PAIRS]


if __name__ == "__main__":
    command_line.run(main)
