"""research/sentence_ends: texts, ends and F1, by hand."""

from itertools import chain

import pytest

from research.sentence_ends import documents, ends, f1


def test_ends_count_characters_without_white_space():
    assert ends(["A b.", "C."]) == ends(["A b.", " ", "C.", ""]) == {3}


def test_lines_without_a_mark_are_left_out():
    lines = ["A headline", "One.", "“Two!”", "", "Three …"]
    ordered, drawn = (list(chain(*documents(lines, way))) for way in (True, False))
    assert ordered == ["One.", "“Two!”", "Three …"]
    assert sorted(drawn) == sorted(ordered)


def test_f1_is_that_of_the_ends_inside_texts():
    texts = [["A.", "B.", "C."], ["D. E."]]
    assert f1(texts, lambda text: text.split(" ")) == pytest.approx(80.0)
    assert f1(texts, lambda text: [text[:2], text[2:]]) == pytest.approx(50.0)
