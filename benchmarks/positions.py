"""Trains a configuration with each position encoding and scores each by the length of the source.

    python -m benchmarks.positions --config configs/multi30k.yaml --steps 4000 \
        --runs runs/positions --source t.en --reference t.de --output results/positions.json
    python -m benchmarks.positions ... --longest 15 --output results/positions_short.json

With `--longest 15` the training text has no pair with a side of more than 15 tokens: the scores of
longer sources are those of lengths that were never seen (length extrapolation). Everything but
`model.position` is equal in all runs. The same command again continues runs that were interrupted.
"""

import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, get_args

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen, numbers
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import usage_of
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.config import Position

POSITIONS = get_args(Position)
ALL = "all"


def main(
    config: str,
    steps: int,
    runs: str,
    source: str,
    reference: str,
    positions: str = "",
    longest: int = 0,
    buckets: str = "10,15,20,25",
    output: str = "",
) -> None:
    """Prints BLEU of each position encoding, on all sources and by their length.

    Args:
        config: configuration of the training, for example configs/multi30k.yaml.
        steps: updates of each run.
        runs: folder for the runs, one for each encoding.
        source: file of test sentences.
        reference: file of their translations.
        positions: encodings to train, with commas between them; all when empty.
        longest: most tokens of either side of a training pair; 0: as configured.
        buckets: the largest number of source tokens of each bucket but the last.
        output: result file to write, for example results/positions.json.
    """
    at_least_one(steps=steps)
    selected = chosen(positions, POSITIONS) if positions else POSITIONS
    limits = numbers(buckets)
    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    rows: list[dict[str, Any]] = []
    for position in selected:
        run = pathlib.Path(runs) / position
        train(run, config, position, steps, longest)
        translator, found = translated(run, texts)
        lengths = [len(translator.tokenizer.encode(text)) for text in texts]
        scores = by_length(found, references, lengths, limits)
        parameters = translator.model.count_params()
        rows += [{"position": position, **row, "parameters": parameters} for row in scores]
    print(of_rows(rows, left=2))
    summary = {"config": config, "updates": steps, "sentences": len(texts), "longest": longest}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def train(run: pathlib.Path, config: str, position: str, steps: int, longest: int) -> None:
    """Trains a run by the command that everyone uses, in a process of its own."""
    options = {"config": config, "run_dir": run, "model.position": position, "train.steps": steps}
    options |= {"data.max_length": longest} if longest else {}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    program = [sys.executable, "-m", "tf_transformer.commands.main", "train"]
    _, usage = usage_of(lambda: subprocess.run([*program, *words], check=True, stdout=sys.stderr))
    print(f"{position}: trained {steps:,} updates in {usage.seconds:,.0f} s", file=sys.stderr)


def translated(run: pathlib.Path, texts: Sequence[str]) -> tuple[Any, list[str]]:
    """The translator of a run, with the search that it configures, and its translations."""
    from tf_transformer.translator import Translator

    translator = Translator.from_run(run)
    return translator, [each.text for each in translator(texts)]


def by_length(
    found: Sequence[str], references: Sequence[str], lengths: Sequence[int], limits: Sequence[int]
) -> list[dict[str, Any]]:
    """BLEU of all translations, then of those in each bucket of source lengths.

    Args:
        found: translations.
        references: their references.
        lengths: source tokens of each.
        limits: the largest length of each bucket but the last; empty buckets are left out.
    """
    import sacrebleu

    rows = []
    for name, first, last in _buckets(limits):
        chosen_rows = [i for i, length in enumerate(lengths) if first <= length <= last]
        if not chosen_rows:
            continue
        hypotheses, expected = ([lines[i] for i in chosen_rows] for lines in (found, references))
        score = sacrebleu.BLEU().corpus_score(hypotheses, [expected])
        rows.append(
            {
                "source_tokens": name,
                "sentences": len(chosen_rows),
                "bleu": round(score.score, 2),
                "length_ratio": round(score.ratio, 3),  # of translations and references, in words
            }
        )
    return rows


def _buckets(limits: Sequence[int]) -> list[tuple[str, float, float]]:
    """Name, smallest and largest length of each bucket."""
    firsts = [1, *(limit + 1 for limit in limits)]
    pairs = zip(firsts, limits, strict=False)
    named = [(f"{first} to {last}", float(first), float(last)) for first, last in pairs]
    return [(ALL, 0.0, float("inf")), *named, (f"from {firsts[-1]}", firsts[-1], float("inf"))]


if __name__ == "__main__":
    command_line.run(main)
