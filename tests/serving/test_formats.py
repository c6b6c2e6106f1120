"""Dividing texts: nothing is lost, and parts are what a model should read."""

from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.serving.formats import lines_of


@given(st.text(st.sampled_from("ab \t\n\r\x0b\x85\u2028\u3000")))
def test_lines_and_what_stands_around_them_are_the_text(text):
    divided = lines_of(text)
    assert divided.join(divided.parts) == text
    assert all(part and part == part.strip() for part in divided.parts)
    assert not any("\n" in part or "\r" in part for part in divided.parts)
    assert not "".join(divided.around).strip()
