"""An export under load: python -m benchmarks.load --saved_model served/x/1 --source test.en.

Runs the SavedModel in a session, as TF Serving does, behind a batching queue with TF Serving's
parameters. Clients, each in a thread of its own, send random lines of the file and odd ones, one
at a time, and wait for the answer. Every answer is compared with the one the line got alone before.
Prints sentences a second, percentiles of latency, wrong and failed answers, and the memory of the
process over time.
"""

import itertools
import pathlib
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

from benchmarks.batching import Batcher, BatchingOptions
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.export.run_in_session import SavedModel
from tf_transformer.files import read_lines

ODD = [b"", b" \t ", b"\xff\xfe\x00", "שלום 日本語 👍🏽".encode(), b"word " * 60, b"x" * 100]
ODD_SHARE = 0.05
SCORE_TOLERANCE = 1e-3

Answer = tuple[bytes, float]  # translation and score


@dataclass
class Record:
    """What the clients saw.

    Attributes:
        latencies: of answered requests, seconds.
        wrong: answers that were not the line's.
        failed: requests without an answer.
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
) -> None:
    """Prints a table, a row for each number of clients.

    Args:
        saved_model: the folder of one version.
        source: file of sentences.
        clients: how many clients at once; 1, 8 and 32 when not given.
        seconds: how long each number of clients goes on.
        batching: how the queue forms batches.
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
    columns = ("clients", "sentences/s", "p50 ms", "p95 ms", "p99 ms", "wrong", "failed", "MB")
    print(f"| {' | '.join(columns)} |\n| {' | '.join(['---:'] * len(columns))} |")
    with Batcher(translate, batching) as batcher:
        for count in clients or [1, 8, 32]:
            record, memory = under_load(batcher, lines, expected, count, seconds)
            p50, p95, p99 = record.percentiles()
            rate = len(record.latencies) / seconds
            numbers = f"{rate:.1f} | {p50:.1f} | {p95:.1f} | {p99:.1f}"
            levels = " → ".join(f"{level:,.0f}" for level in memory)
            print(f"| {count} | {numbers} | {record.wrong} | {record.failed} | {levels} |")


def under_load(
    batcher: Batcher[bytes, Answer],
    lines: list[bytes],
    expected: dict[bytes, Answer],
    clients: int,
    seconds: float,
) -> tuple[Record, list[float]]:
    """What so many clients saw in so many seconds, and the memory at five moments, MB."""
    record, lock = Record(), threading.Lock()
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            line = rng.choice(ODD if rng.random() < ODD_SHARE else lines)
            start = time.perf_counter()
            try:
                found = batcher.submit(line).result()
            except Exception:  # of whatever kind, it is an answer that a client did not get
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


def resident_megabytes() -> float:
    """The memory of this process that is in use now, as Linux counts it."""
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (line for line in status.split("\n") if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    command_line.run(main)
