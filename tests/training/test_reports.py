"""What a training writes down, read again."""

from tf_transformer.training.reports import Journal, journal_up_to


def test_lines_after_an_update_and_cut_ones_do_not_count(tmp_path):
    assert journal_up_to(tmp_path, 9) == []
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 2}\n{"step": 4, "loss": 0.1}\n{"step": 6}\n{"st'
    )
    rows = [{"step": 2}, {"step": 4, "loss": 0.1}]
    assert journal_up_to(tmp_path, 5) == rows
    Journal(tmp_path, done=5).write(6, {"loss": 0.5})
    assert journal_up_to(tmp_path, 9) == [*rows, {"step": 6, "loss": 0.5}]
