"""research/guards: correlations, and faults that a program puts in."""

import numpy as np
import pytest

from research import guards
from tf_transformer.text.faults import scripts_of


def test_equal_values_have_their_mean_rank():
    assert guards.ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_the_calibrated_score_is_a_function_of_the_others():
    draw = np.random.default_rng(1)
    features = [{"a": draw.normal(size=50), "b": draw.normal(size=50)} for _ in range(2)]
    quality = [2 * x["a"] - x["b"] + 5 for x in features]
    rows = guards.correlation_rows("runs/x", features, quality)
    assert [row["score"] for row in rows] == ["a", "b", guards.CALIBRATED]
    assert (rows[-1]["pearson"], rows[-1]["spearman"]) == (1.0, 1.0)
    assert rows[0]["pearson"] < 1


@pytest.mark.parametrize("fault", guards.FAULTS)
def test_each_fault_changes_a_translation_and_is_found(fault):
    source = "In 1998, my brother bought a small yellow house with twelve rooms near the big river."
    text = "Im Jahr 1998 kaufte mein Bruder ein kleines gelbes Haus mit zwölf Zimmern am Fluss."
    rows = guards.fault_rows("x", [source], [text], scripts_of(["Haus"]))
    row = next(row for row in rows if row["fault"] == fault)
    assert (row["lines"], row["recall"], row["precision"], row["alarms"]) == (1, 1.0, 1.0, 0.0)


def test_a_table_of_faults_counts_lines_that_can_have_them():
    rows = guards.fault_rows("runs/x", ["In 1998.", "one"], ["Im Jahr 1998.", "eins"], [])
    lost = next(row for row in rows if row["fault"] == "a number is lost")
    assert (lost["lines"], lost["recall"], lost["precision"], lost["alarms"]) == (1, 1.0, 1.0, 0.0)
