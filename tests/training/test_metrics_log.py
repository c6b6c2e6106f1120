"""The log of a training run that goes on."""

import math

from tf_transformer.run.folder import RunFolder
from tf_transformer.training.reports import MetricsLog


def test_lines_after_the_checkpoint_are_replaced(tmp_path):
    run = RunFolder(tmp_path)
    run.metrics.write_text('{"step": 2}\n{"step": 4, "loss": 0.1}\n{"step": 6}\n{"st')
    MetricsLog(RunFolder(tmp_path), done=5).write(6, {"loss": 0.5})
    expected = [{"step": 2}, {"step": 4, "loss": 0.1}, {"step": 6, "loss": 0.5}]
    assert run.load_metrics(9) == expected


def test_numbers_that_are_not_finite_become_null(tmp_path, capsys):
    run = RunFolder(tmp_path)
    run.metrics.write_text('{"step": 2, "perplexity": Infinity}\n')  # of an earlier version
    MetricsLog(RunFolder(tmp_path), done=5).write(6, {"loss": math.nan, "perplexity": math.inf})
    assert run.metrics.read_text().splitlines() == [
        '{"step": 2, "perplexity": null}',
        '{"step": 6, "loss": null, "perplexity": null}',
    ]
    assert "update 6: loss nan, perplexity inf" in capsys.readouterr().out
