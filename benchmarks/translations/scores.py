"""Scores a run on a test set with several weights, numbers and searches.

    python -m benchmarks.translations.scores --run_dir runs/mine --source t.en --reference t.de

For each number of averaged checkpoints, the table has BLEU and chrF with beam 4 and with greedy
search, in float32 and bfloat16. It also has the number of translations that differ from float32.
"""

import itertools
import pathlib
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import usage_of
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line

DTYPES = ("float32", "bfloat16")


def main(
    run_dir: str,
    source: str,
    reference: str,
    averages: list[int] | None = None,
    beam_sizes: list[int] | None = None,
    training_seconds: float = 0.0,
    train_config: str = "",
    tokenize: str = "13a",
    output: str = "",
) -> None:
    """Prints a table of scores.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        reference: file of their translations.
        averages: how many of the newest checkpoints to average; 10 and 1 when not given.
        beam_sizes: beams to try; 4 and 1 (greedy) when not given.
        training_seconds: the time that train.py printed, for the result file.
        train_config: the configuration that the run was trained with, for the result file.
        tokenize: of BLEU, as in sacreBLEU; none for text that is tokenised.
        output: result file to write, like benchmarks/results/multi30k.json; for training of the
            same configuration with another seed, benchmarks/results/multi30k_seed_2.json.
    """
    import sacrebleu

    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    rows, expected = [], dict[tuple[int, int], list[str]]()
    metric, chrf = sacrebleu.BLEU(tokenize=tokenize), sacrebleu.CHRF()
    averages, beam_sizes = averages or [10, 1], beam_sizes or [4, 1]
    for average, beam, dtype in itertools.product(averages, beam_sizes, DTYPES):
        translator = _translator(run_dir, dtype, average=average, beam_size=beam)
        found, usage = usage_of(lambda: translator(texts))  # noqa: B023  called at once
        hypotheses = [prediction.text for prediction in found]
        same_search = expected.setdefault((average, beam), hypotheses)
        row = {"average": average, "dtype": dtype, "beam": beam}
        row["bleu"] = round(metric.corpus_score(hypotheses, [references]).score, 2)
        row["chrf"] = round(chrf.corpus_score(hypotheses, [references]).score, 2)
        row["different"] = sum(a != b for a, b in zip(same_search, hypotheses, strict=True))
        rows.append(row | {name: round(value, 2) for name, value in usage._asdict().items()})
    print(of_rows(rows))
    summary: dict[str, Any] = {
        "sentences": len(texts),
        "signature": str(metric.get_signature()),
        "updates": _updates(run_dir),
        "training_seconds": training_seconds,
        "config": train_config,
    }
    packages = ("tensorflow", "keras", "sacrebleu")
    results.save(output, rows, packages, summary={k: v for k, v in summary.items() if v})


def _translator(run_dir: str, dtype: str, **options: Any):
    from tf_transformer.inference.translator import Translator

    return Translator.from_run(run_dir, dtype, **options)


def _updates(run_dir: str) -> int:
    """The number of updates that made the newest checkpoint."""
    found = pathlib.Path(run_dir, "checkpoints").glob("*.index")
    return max((int(path.stem.rpartition("-")[2]) for path in found), default=0)


if __name__ == "__main__":
    command_line.run(main)
