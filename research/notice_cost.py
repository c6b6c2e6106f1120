"""Times exports with and without the output `warnings`, in turns.

    python -m research.notice_cost --run_dir pretrained/tatoeba-en-de --source test.en

Both exports are loaded in one process, into a session each. Each request is timed many times. The
table has how much longer all requests together take with warnings: by the least time of each
request, and by its median. Each number is the median of several processes.
"""

import pathlib
import statistics
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.processes import Process
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line

WAYS = ("without", "with")


def main(
    run_dir: str,
    source: str,
    requests: int = 20,
    rounds: int = 40,
    processes: int = 5,
    output: str = "",
) -> None:
    """Prints a row for greedy search and a beam of 4, each with one text and with 32 texts.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        requests: how many requests of one text; of 32 texts, there are a tenth of them.
        rounds: how often each request is timed.
        processes: how many processes time each row, one after another.
        output: result file to write, for example research/results/notice_cost.json.
    """
    rows = []
    for beam_size in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            with Process() as process:
                process.call(
                    "research.notice_cost:export", run=run_dir, folder=folder, beam_size=beam_size
                )
            for size in (1, 32):
                count = requests if size == 1 else max(1, requests // 10)
                lines = first_lines(source, count * size)
                texts = [lines[start : start + size] for start in range(0, len(lines), size)]
                found = []
                for _ in range(processes):
                    with Process() as process:
                        found.append(
                            process.call(
                                "research.notice_cost:measured",
                                folder=folder,
                                requests=texts,
                                rounds=rounds,
                            )
                        )
                medians = {
                    key: round(statistics.median(x[key] for x in found), 2) for key in found[0]
                }
                rows.append({"beam_size": beam_size, "texts": size} | medians)
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "keras"))


def export(run: str, folder: str, beam_size: int) -> None:
    """Writes both exports of a run to a folder."""
    from tf_transformer.inference.text_graph import write_saved_model
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run, beam_size=beam_size)
    for way in WAYS:
        translator.translates = way == "with"  # type: ignore[misc]
        write_saved_model(translator.graph(), pathlib.Path(folder, way))


def measured(folder: str, requests: list[list[str]], rounds: int) -> dict[str, float]:
    """Milliseconds of a request without warnings, and how many percent longer it takes with them.

    Which export comes first changes from round to round.
    """
    from tf_transformer.export.run_in_session import SavedModel

    models = [SavedModel(str(pathlib.Path(folder, way))) for way in WAYS]
    seconds = np.zeros((len(WAYS), len(requests), rounds))
    for number in range(-2, rounds):  # the first two optimize the graphs
        for place, texts in enumerate(requests):
            for way in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter()
                models[way]("serving_default", {"text": texts})
                seconds[way, place, max(number, 0)] = time.perf_counter() - start
    least, median = seconds.min(axis=2).mean(axis=1), np.median(seconds, axis=2).mean(axis=1)
    row: dict[str, Any] = {"milliseconds": round(float(1000 * least[0]), 2)}
    row["longer_least"] = round(float(100 * (least[1] / least[0] - 1)), 2)
    row["longer_median"] = round(float(100 * (median[1] / median[0] - 1)), 2)
    return row


if __name__ == "__main__":
    command_line.run(main)
