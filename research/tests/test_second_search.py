"""research/second_search: which translations are replaced, and the ban on pieces of the source."""

import numpy as np

from research import second_search
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction


def test_a_translation_is_replaced_by_one_with_fewer_faults():
    loop = Prediction("das Haus das Haus", -1.0, (Notice.LOOP,))
    good, bad = Prediction("das Haus", -2.0), Prediction("ein Hut", -2.0, (Notice.CUT,))
    row = second_search.figures([loop] * 3, [good, bad, loop], ["das Haus"] * 3)
    assert (row["lines"], row["replaced"], row["better"], row["worse"]) == (3, 2, 1, 1)
    assert row["chrf_before"] != row["chrf_after"]


def test_pieces_of_the_source_are_excluded():
    ban = second_search.NoCopies([3, 5])
    facts = ban.facts(np.array([[3, 4, 6, 2, 0]]), np.array([9]))
    log_p = np.zeros((1, 2, 7), np.float32)
    allowed = np.asarray(ban(log_p, np.zeros((1, 2, 4)), np.array(1), facts)) > -1
    assert allowed.tolist() == [[[False, True, True, False, True, True, True]] * 2]


def test_a_number_is_a_term_without_the_marks_around_it():
    assert [second_search.inside(word) for word in ("(1998),", "3.5%", "12")] == [
        *("1998", "3.5", "12")
    ]
