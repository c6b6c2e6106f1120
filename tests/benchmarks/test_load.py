"""The batching queue forms batches as asked, and the load test sees what goes wrong."""

import threading
import time

import pytest

from benchmarks.serving.batching import Batcher, BatchingOptions
from benchmarks.serving.load import ODD, Record, main, under_load
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator


class Doubling:
    """Doubles numbers, and keeps the batches it was given."""

    def __init__(self, seconds=0.0):
        self.batches = []
        self.seconds = seconds

    def __call__(self, rows):
        self.batches.append(list(rows))
        time.sleep(self.seconds)
        if -1 in rows:
            raise ValueError("minus one")
        return [2 * row for row in rows]


def options(**fields):
    return BatchingOptions(**{"max_batch_size": 4, "batch_timeout_micros": 200_000} | fields)


def test_requests_that_come_together_form_batches_no_larger_than_allowed():
    work = Doubling()
    with Batcher(work, options(num_batch_threads=1, allowed_batch_sizes=())) as batcher:
        futures = [batcher.submit(n) for n in range(10)]
        assert [future.result(timeout=9) for future in futures] == [2 * n for n in range(10)]
    assert [len(batch) for batch in work.batches] == [4, 4, 2]


def test_batches_are_filled_up_with_their_first_row():
    work = Doubling()
    with Batcher(work, options(num_batch_threads=1, allowed_batch_sizes=(1, 4))) as batcher:
        futures = [batcher.submit(n) for n in (7, 8)]
        assert [future.result(timeout=9) for future in futures] == [14, 16]
        assert batcher.submit(9).result(timeout=9) == 18
    assert work.batches == [[7, 8, 7, 7], [9]]


def test_a_lone_request_waits_no_longer_than_the_timeout():
    with Batcher(Doubling(), options(batch_timeout_micros=1000)) as batcher:
        assert batcher.submit(1).result(timeout=5) == 2


def test_an_error_reaches_all_clients_of_the_batch_and_no_others():
    with Batcher(Doubling(), options(num_batch_threads=1)) as batcher:
        futures = [batcher.submit(n) for n in (1, -1)]
        for future in futures:
            with pytest.raises(ValueError, match="minus one"):
                future.result(timeout=9)
        assert batcher.submit(3).result(timeout=9) == 6


def test_batches_are_worked_on_side_by_side():
    both_at_work = threading.Barrier(2, timeout=9)

    def work(rows):
        both_at_work.wait()  # breaks unless two threads come here at once
        return rows

    with Batcher(work, options(max_batch_size=1)) as batcher:
        assert [f.result(timeout=9) for f in [batcher.submit(1), batcher.submit(2)]] == [1, 2]


def test_the_load_test_counts_what_is_wrong_and_what_fails():
    lines = [b"a", b"b", b"c"]
    expected = {line: (line, -1.0) for line in (*lines, *ODD)}

    def work(rows):
        if b"c" in rows:
            raise ValueError
        return [(b"?" if row == b"b" else row, -1.0) for row in rows]

    with Batcher(work, options(max_batch_size=1)) as batcher:
        record, memory = under_load(batcher, lines, expected, clients=2, seconds=0.5)
    asked = len(record.latencies) + record.failed
    assert record.wrong == pytest.approx(asked * 0.95 / 3, rel=0.3)
    assert record.failed == pytest.approx(asked * 0.95 / 3, rel=0.3)
    assert len(memory) == 5
    assert min(memory) > 10


def test_percentiles_are_milliseconds():
    record = Record(latencies=[n / 1000 for n in range(101)])
    assert record.percentiles() == pytest.approx([50, 95, 99])


def test_scores_count_too():
    record = Record()
    for score in (-1.0, -1.0005, -1.1):
        record.note(0.1, (b"a", score), (b"a", -1.0))
    assert record.wrong == 1


@pytest.mark.slow
def test_an_export_under_load(run, tmp_path, capsys):
    Translator.from_run(run).save(tmp_path / "1")
    main(str(tmp_path / "1"), str(run / "samples.txt"), clients=[1, 4], seconds=1.0)
    rows = [line.split(" | ") for line in capsys.readouterr().out.strip().split("\n")[2:]]
    assert [row[0] for row in rows] == ["| 1", "| 4"]
    for row in rows:
        assert float(row[1]) > 1
        assert row[5:7] == ["0", "0"]


def test_what_is_missing_is_named(tmp_path):
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(InputError, match="has no line with text"):
        main(str(tmp_path), str(tmp_path / "empty"))
    (tmp_path / "lines").write_text("one\n")
    with pytest.raises(InputError, match="is no SavedModel; give the folder of a version"):
        main(str(tmp_path), str(tmp_path / "lines"))
