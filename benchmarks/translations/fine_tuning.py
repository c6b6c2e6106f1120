r"""Scores several runs on several test sets, such as a model before and after its fine-tuning.

python -m benchmarks.translations.fine_tuning --runs '{before: runs/general, after: runs/mine}' \
        --sets '{general: [g.en, g.de], captions: [c.en, c.de]}' \
        --output benchmarks/results/fine_tuning.json
"""

import os
import pathlib
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import checkpoints_in


def main(
    runs: dict[str, str], sets: dict[str, list[str]], beam_size: int = 4, output: str = ""
) -> None:
    """Prints BLEU and chrF of each run on each test set, and the size of its newest checkpoint.

    Args:
        runs: folders of runs by name.
        sets: files of sources and references by the name of the test set.
        beam_size: beam size of all searches.
        output: result file to write, like benchmarks/results/fine_tuning.json.
    """
    import sacrebleu

    from tf_transformer.inference.translator import Translator

    rows: list[dict[str, Any]] = []
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    for run, folder in runs.items():
        translator = Translator.from_run(os.path.abspath(folder), beam_size=beam_size)
        for name, (source, reference) in sets.items():
            texts, references = (first_lines(path, 10**9) for path in (source, reference))
            translations = [prediction.text for prediction in translator(texts)]
            row: dict[str, Any] = {"run": run, "set": name, "sentences": len(texts)}
            row["checkpoint_megabytes"] = round(checkpoint_size(folder) / 1e6, 2)
            for key, metric in (("bleu", bleu), ("chrf", chrf)):
                row[key] = round(metric.corpus_score(translations, [references]).score, 2)
            rows.append(row)
    print(of_rows(rows, left=2))
    summary = {"signature": str(bleu.get_signature()), "beam": beam_size}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def checkpoint_size(run_dir: str) -> int:
    """The bytes of the newest checkpoint of a run."""
    newest = pathlib.Path(checkpoints_in(RunFolder(run_dir).checkpoints)[-1])
    return sum(path.stat().st_size for path in newest.parent.glob(f"{newest.name}.*"))


if __name__ == "__main__":
    command_line.run(main)
