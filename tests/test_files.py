"""Whole files or none, and a line for a line."""

import pytest

from tf_transformer.files import one_line, write_whole


def test_file_is_written_with_its_folder_and_nothing_beside_it(tmp_path):
    path = tmp_path / "new" / "folder" / "out.txt"
    write_whole(path, "ß\n")
    assert path.read_bytes() == b"\xc3\x9f\n"
    assert list(path.parent.iterdir()) == [path]


def test_old_content_stays_when_new_content_cannot_be_written(tmp_path):
    path = tmp_path / "out.txt"
    write_whole(path, b"old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "a lone surrogate has no UTF-8: \ud800")
    assert path.read_bytes() == b"old"


def test_one_line_has_no_newline():
    assert one_line("a\nb\u2028c\r") == "a b\u2028c\r"
