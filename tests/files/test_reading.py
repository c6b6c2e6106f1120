"""Lines of files, and files that are written completely or not at all."""

import gzip

import pytest

from tf_transformer.errors import InputError
from tf_transformer.files.reading import align, decode, read_aligned, read_lines, read_texts
from tf_transformer.files.writing import one_line, write_whole


def test_aligned_files_give_line_n_of_each_together(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n\n3\r\n4\x85")
    (tmp_path / "b").write_bytes(b"x\ny\n\xe2\x80\xa8\nz\n")
    expected = [(b"1", b"x"), (b"", b"y"), (b"3", b"\xe2\x80\xa8"), (b"4\x85", b"z")]
    assert list(read_aligned(tmp_path / "a", tmp_path / "b")) == expected


TEXT = "ein\nüber\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("compressed", [False, True])
def test_utf16_is_an_error(tmp_path, encoding, compressed):
    """With a byte-order mark, and without one."""
    path = tmp_path / ("a.gz" if compressed else "a")
    content = TEXT.encode(encoding)
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(InputError, match=f"{path} is UTF-16; expected UTF-8. .*iconv -f UTF-16"):
        list(read_lines(path))


@pytest.mark.parametrize("content", [b"\0\n", b"a\0b\0\n\0\n\0\0", b"a\n\xff\xfe\n", b"\xff\n"])
def test_other_bytes_are_lines(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    assert list(read_lines(tmp_path / "a")) == content.removesuffix(b"\n").split(b"\n")


def test_a_text_of_another_encoding_gives_one_warning(capsys):
    lines = [line.encode("latin-1") for line in ("ein", "über", "äußern")]
    assert list(decode(lines, "a.de")) == ["ein", "\ufffdber", "\ufffdu\ufffdern"]
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: a.de is not UTF-8: line 2 has the byte 0xfc.")


def test_texts_of_a_file_and_an_empty_one_are_an_error(tmp_path):
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").touch()
    with pytest.raises(InputError, match=r"b is empty, but .*a has more lines"):
        read_texts(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(("first", "second"), [(1, 3), (2, 3), (3, 1)])
def test_files_of_unequal_length_are_an_error(first, second):
    shorter, longer = ("a", "b") if first < second else ("b", "a")
    rows = align(["a", "b"], [[b""] * first, [b""] * second])
    message = f"{shorter} ends after line {min(first, second)}, but {longer} has more lines."
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
