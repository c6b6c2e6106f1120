"""Loss and tokens per second of a training run, from the updater's metrics."""

from types import SimpleNamespace

import pytest

from tf_transformer.training.reports import TrainingProgress


class Updater:
    """100 target tokens and a loss of 2 per update."""

    def __init__(self):
        self.tokens_seen = 0
        self.metrics = {"loss": SimpleNamespace(result=lambda: 2.0)}


def test_metrics_are_read_every_two_seconds(capsys):
    updater, seconds = Updater(), [0.0]
    with TrainingProgress(10, 0, clock=lambda: seconds[0]) as progress:
        read = []
        for _ in range(6):
            seconds[0] += 0.5
            updater.tokens_seen += 100
            read.append(progress.step(updater))
            if read[-1]:
                progress.refresh(updater)
    assert read == [False, False, False, True, False, False]
    assert capsys.readouterr().err.splitlines() == [
        "40%, 4/10, 00:03 left, loss 2.000, 200 tokens/s, 2.00 updates/s, 00:02 elapsed",
        "60%, 6/10, 00:02 left, loss 2.000, 200 tokens/s, 2.00 updates/s, 00:03 elapsed",
    ]


def test_an_interval_shorter_than_that_shows_its_metrics(capsys):
    with TrainingProgress(4, 0, clock=iter(range(100)).__next__) as progress:
        progress.step(Updater())
        progress.end_interval({"loss": 1.5, "tokens_per_second": 1234})
    log = capsys.readouterr().err
    assert log.startswith("25%, 1/4, ")
    assert "loss 1.500, 1,234 tokens/s" in log


def progress_of(clock, updates, steps, interval=10**9, **options):
    """Makes updates of half a second, with ten seconds of validation after each interval."""
    updater = Updater()
    with TrainingProgress(steps, 0, clock=lambda: clock[0], **options) as progress:
        progress.start_interval()
        for update in range(1, updates + 1):
            clock[0] += 20 if update <= 3 else 0.5  # the first ones are compiled
            progress.step(updater)
            if update % interval == 0:
                clock[0] += 10
                progress.end_interval({"loss": 1.5, "tokens_per_second": 1234})
                progress.start_interval()


@pytest.mark.parametrize("interval", [10**9, 35])
def test_an_estimate_follows_the_first_updates(capsys, interval):
    progress_of([0.0], 130, 14_520, interval)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("about 2.0 hours left for 14,400 updates, without validations.")
    assert "--train.steps" in line
    assert "--model tiny" in line


def test_there_is_no_estimate_without_updates_left_or_on_other_workers(capsys):
    progress_of([0.0], 119, 14_520)
    progress_of([0.0], 120, 120)
    progress_of([0.0], 130, 14_520, shown=False)
    assert capsys.readouterr().out == ""
