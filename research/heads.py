"""Measures how much each head of attention matters to a translation model.

    python -m research.heads --run_dir runs/multi30k --source test.en \
        --reference test.de --output research/results/heads.json

Translates a test set without each head in turn, as Michel et al. (2019) do, and then without the
least important heads together. The BLEU that is lost without a head is its importance.
"""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import bleu, first_lines
from research.head_removal import Head, all_heads, without
from tf_transformer.commands import command_line
from tf_transformer.inference.translator import Translator

STEPS = 10  # numbers of heads that are removed together: tenths of all


def main(
    run_dir: str,
    source: str,
    reference: str,
    beam_size: int = 1,
    lines: int = 1000,
    output: str = "",
) -> None:
    """Prints the BLEU that each head is worth, and BLEU by the number of removed heads.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        reference: their translations.
        beam_size: of the search.
        lines: how many of the file's lines.
        output: result file to write, for example research/results/heads.json.
    """
    translator = Translator.from_run(run_dir, beam_size=beam_size)
    texts, references = first_lines(source, lines), first_lines(reference, lines)
    heads = all_heads(translator.model)

    def bleu_without(removed: Iterable[Head]) -> float:
        with without(translator.model, removed):
            return bleu([translation.text for translation in translator(texts)], references) or 0.0

    whole = bleu_without([])
    lost = [round(whole - bleu_without([head]), 3) for head in tqdm(heads, unit="head")]
    rows = [
        head._asdict() | {"bleu_lost": number} for head, number in zip(heads, lost, strict=True)
    ]
    order = [head for _, head in sorted(zip(lost, heads, strict=True))]
    counts = [len(heads) * step // STEPS for step in range(STEPS + 1)]
    pruned = [
        {"removed": count, "kept": len(heads) - count, "bleu": bleu_without(order[:count])}
        for count in tqdm(counts, unit="model")
    ]
    print(of_rows(by_layer(rows), left=1), of_rows(pruned, left=0), sep="\n\n")
    summary = {"sentences": len(texts), "beam": beam_size, "bleu": whole, "heads": len(heads)}
    results.save(output, rows, ("tensorflow", "keras"), summary=summary, pruned=pruned)


def by_layer(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each layer of attention with the BLEU lost without each of its heads."""
    table: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        line = table.setdefault(
            (row["attention"], row["layer"]),
            {"attention": f"{row['attention']} {row['layer'] + 1}"},
        )
        line[f"head {row['number'] + 1}"] = row["bleu_lost"]
    return list(table.values())


if __name__ == "__main__":
    command_line.run(main)
