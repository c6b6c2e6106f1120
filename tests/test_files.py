"""Lines of files, and files that are written completely or not at all."""

import pytest

from tf_transformer.errors import InputError
from tf_transformer.files import align, one_line, read_aligned, write_whole


def test_aligned_files_give_line_n_of_each_together(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n\n3\r\n4\x85")
    (tmp_path / "b").write_bytes(b"x\ny\n\xe2\x80\xa8\nz\n")
    expected = [(b"1", b"x"), (b"", b"y"), (b"3", b"\xe2\x80\xa8"), (b"4\x85", b"z")]
    assert list(read_aligned(tmp_path / "a", tmp_path / "b")) == expected


@pytest.mark.parametrize(("first", "second"), [(0, 3), (2, 3), (3, 1)])
def test_files_of_unequal_length_are_an_error(first, second):
    shorter, longer = ("a", "b") if first < second else ("b", "a")
    rows = align(["a", "b"], [[b""] * first, [b""] * second])
    message = f"{shorter} ends after line {min(first, second)} but {longer} goes on: line n of one"
    with pytest.raises(InputError, match=message):
        list(rows)


def test_a_file_is_written_with_its_folder_and_no_other_file(tmp_path):
    path = tmp_path / "new" / "folder" / "out.txt"
    write_whole(path, "ß\n")
    assert path.read_bytes() == b"\xc3\x9f\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_content(tmp_path):
    path = tmp_path / "out.txt"
    write_whole(path, b"old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "a lone surrogate has no UTF-8: \ud800")
    assert path.read_bytes() == b"old"


def test_one_line_has_no_newline():
    assert one_line("a\nb\u2028c\r") == "a b\u2028c\r"
