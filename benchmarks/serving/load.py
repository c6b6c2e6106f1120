"""Measures an export under the load of many clients.

    python -m benchmarks.serving.load --saved_model served/x/1 --source test.en --clients '[1, 8]'

A session runs the SavedModel, as in TF Serving. A queue before it forms batches with TF Serving's
parameters. Each client has a thread, which sends a random line, waits for the answer, and repeats
this. Each answer is compared with the answer to the same line in a batch of one.
"""

import itertools
import pathlib
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import resident_megabytes, usage_of
from benchmarks.serving.batching import Batcher, BatchingOptions
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.export.run_in_session import SavedModel
from tf_transformer.files.reading import read_lines

ODD = [b"", b" \t ", b"\xff\xfe\x00", "שלום 日本語 👍🏽".encode(), b"word " * 60, b"x" * 100]
ODD_SHARE = 0.05
SCORE_TOLERANCE = 1e-3

Answer = tuple[bytes, float]  # translation and score


@dataclass
class Record:
    """The observations of the clients.

    Attributes:
        latencies: latency of each answered request, in seconds.
        wrong: number of answers that differ from the answer to the line in a batch of one.
        failed: number of requests without an answer.
    """

    latencies: list[float] = field(default_factory=list)
    wrong: int = 0
    failed: int = 0

    def note(self, seconds: float, found: Answer, expected: Answer) -> None:
        """Adds an answer."""
        self.latencies.append(seconds)
        same = found[0] == expected[0] and abs(found[1] - expected[1]) <= SCORE_TOLERANCE
        self.wrong += not same

    def percentiles(self) -> list[float]:
        """The 50th, 95th and 99th of the latencies, milliseconds."""
        return [1000 * value for value in np.percentile(self.latencies or [0.0], (50, 95, 99))]


def main(
    saved_model: str,
    source: str,
    clients: list[int] | None = None,
    seconds: float = 60.0,
    batching: BatchingOptions = BatchingOptions(),
    output: str = "",
) -> None:
    """Prints speed, latency, errors and memory, with a row for each number of clients.

    Args:
        saved_model: folder of one version, like served/x/1.
        source: file of sentences; one of twenty requests is an odd line.
        clients: numbers of clients; null: 1, 8 and 32.
        seconds: time in which each number of clients sends requests.
        batching: the batching parameters of the queue.
        output: result file to write, like benchmarks/results/serving_load.json.
    """
    lines = [line for line in itertools.islice(read_lines(source), 10_000) if line.strip()]
    if not lines:
        raise InputError(f"{source} has no line with text; give a file of sentences.")
    if not (pathlib.Path(saved_model) / "saved_model.pb").is_file():
        raise InputError(f"{saved_model} is no SavedModel; give the folder of a version.")
    model = SavedModel(saved_model)

    def translate(texts: Sequence[bytes]) -> list[Answer]:
        found = model("serving_default", {"text": texts})
        return list(zip(found["translation"], found["score"].tolist(), strict=True))

    expected = {line: translate([line])[0] for line in tqdm({*lines, *ODD}, desc="alone")}
    with Batcher(translate, batching) as batcher:
        rows = [
            measured(batcher, lines, expected, count, seconds) for count in clients or [1, 8, 32]
        ]
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "tensorflow-text"))


def measured(
    batcher: Batcher[bytes, Answer],
    lines: list[bytes],
    expected: dict[bytes, Answer],
    clients: int,
    seconds: float,
) -> dict[str, Any]:
    """The row of the table for a number of clients."""
    (record, memory), usage = usage_of(
        lambda: under_load(batcher, lines, expected, clients, seconds)
    )
    p50, p95, p99 = record.percentiles()
    return {
        "clients": clients,
        "sentences_per_second": round(len(record.latencies) / seconds, 1),
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "p99_ms": round(p99, 1),
        "wrong": record.wrong,
        "failed": record.failed,
        "minor_faults": usage.minor_faults,
        "system_seconds": round(usage.system_seconds, 2),
        "memory_mb": [round(level) for level in memory],
    }


def under_load(
    batcher: Batcher[bytes, Answer],
    lines: list[bytes],
    expected: dict[bytes, Answer],
    clients: int,
    seconds: float,
) -> tuple[Record, list[float]]:
    """The observations of the clients, and the memory of the process at five moments, MB."""
    record, lock = Record(), threading.Lock()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            line = rng.choice(ODD if rng.random() < ODD_SHARE else lines)
            start = time.perf_counter()
            try:
                found = batcher.submit(line).result()
            except Exception:  # whatever it is, the client has no answer
                with lock:
                    record.failed += 1
            else:
                with lock:
                    record.note(time.perf_counter() - start, found, expected[line])

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    memory = []
    for _ in tqdm(range(5), desc=f"{clients} clients", unit="part"):
        time.sleep(seconds / 5)
        memory.append(resident_megabytes())
    for thread in threads:
        thread.join()
    return record, memory


if __name__ == "__main__":
    command_line.run(main)
