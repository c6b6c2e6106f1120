"""Options and lines of the files of other programs."""

import pathlib

import pytest

from tf_transformer.errors import InputError
from tf_transformer.imports.options import Options, read_lines


def test_lines_end_at_line_feeds_only(tmp_path):
    """A return is removed if every line has one; a token may end with it."""
    path = tmp_path / "tokens.txt"
    for content, lines in (
        ("a\nb\u2028c\n", ["a", "b\u2028c"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb", ["a\r", "b"]),
        ("", []),
    ):
        path.write_bytes(content.encode())
        assert read_lines(path) == lines
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"tokens\.txt cannot be read"):
        read_lines(path)


@pytest.mark.parametrize("value", [None, "2", 2.0, True, 0])
def test_a_number_is_an_integer_of_the_least_size(value):
    assert Options({"depth": 2}, pathlib.Path("a.json")).number("depth") == 2
    with pytest.raises(InputError, match=r"a\.json: depth must be an integer of at least 1, got"):
        Options({"depth": value}, pathlib.Path("a.json")).number("depth")
