"""The one reader of text: every program, and every way in, gives the same lines."""

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import pathlib
import sys
import tempfile
import threading
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export.serving import client_rest
from tf_transformer.errors import InputError
from tf_transformer.export import run_in_session, standalone_model
from tf_transformer.files.arriving_lines import ArrivingLines
from tf_transformer.files.reading import (
    check_file,
    literal,
    read_lines,
    read_texts,
    split_paths,
    text_lines,
)
from tf_transformer.files.streaming import Output, Stream

MARK = codecs.BOM_UTF8
COMPRESSIONS = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
with contextlib.suppress(ModuleNotFoundError):
    import zstandard

    COMPRESSIONS["Zstandard"] = zstandard.ZstdCompressor(write_checksum=True).compress
TEXT = "ein\nüber\r\n\r\nende".encode()
LINES = [b"ein", "über".encode(), b"", b"ende"]


@contextlib.contextmanager
def pipe(content):
    """The descriptor of a pipe that another thread fills."""
    reading, writing = os.pipe()

    def write():
        with contextlib.suppress(BrokenPipeError), open(writing, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield reading
    finally:
        os.close(reading)
        writer.join()


def stdin_of(content):
    return mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@contextlib.contextmanager
def program(content, *words):
    """Standard input, standard output and the command line of a program in this process."""
    output = io.TextIOWrapper(io.BytesIO())
    argv = mock.patch.object(sys, "argv", ["program", *words])
    with stdin_of(content), mock.patch.object(sys, "stdout", output), argv:
        yield


def from_a_file(content):
    """Under a name that says nothing, or something else."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "text.gz")
        path.write_bytes(content)
        return list(read_lines(path))


def from_a_pipe_read_twice(content):
    with pipe(content) as descriptor:
        first, second = (list(read_lines(f"/dev/fd/{descriptor}")) for _ in range(2))
    assert first == second
    return first


def from_arriving_lines(content):
    with pipe(content) as descriptor:
        return list(text_lines.without_ends(ArrivingLines(descriptor), "stdin"))


def byte_by_byte(content):
    return list(text_lines.lines_of((content[i : i + 1] for i in range(len(content))), "x"))


def streamed(*inputs):
    lines = []

    def step(window, progress):
        lines.extend(line.encode() for line in window)
        return [""] * len(window)

    with contextlib.redirect_stderr(io.StringIO()):
        Stream(inputs, [Output("", lambda number, line: [])]).run(step)
    return lines


def from_a_stream_of_a_pipe(content):
    with program(b""), pipe(content) as descriptor:
        return streamed(f"/dev/fd/{descriptor}")


def from_a_stream_of_standard_input(content):
    with program(content):
        return streamed("")


def from_the_client(content):
    lines = []

    def predict(server, model, inputs, *options):
        lines.extend(inputs["text"])
        return []

    with program(content, "--model", "m"), mock.patch.object(client_rest, "predict", predict):
        client_rest.main()
    return lines


def from_run_in_session(content):
    lines = []

    def model(signature, inputs):
        lines.extend(inputs["text"])
        return {}

    with program(content), mock.patch.object(run_in_session, "SavedModel", return_value=model):
        run_in_session.main("model")
    return lines


def from_a_standalone_program(content):
    lines = []

    def model(texts):
        lines.extend(text.encode() for text in texts)
        return []

    with program(content):
        standalone_model.results(model)
    return lines


READERS = [
    *(from_a_file, from_a_pipe_read_twice, from_arriving_lines, byte_by_byte),
    *(from_a_stream_of_a_pipe, from_a_stream_of_standard_input),
    *(from_the_client, from_run_in_session, from_a_standalone_program),
]
CHARACTERS = st.sampled_from("aß\r\u2028\x85\ufeff \t") | st.characters(
    exclude_characters="\n\0", exclude_categories=["Cs"]
)


@settings(max_examples=60)
@given(
    st.text(CHARACTERS | st.just("\n"), max_size=30),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(sorted(COMPRESSIONS)),
)
def test_every_reader_gives_the_same_lines(text, mark, end, compression):
    """Those of `bytes.split`, without a mark at the start and one carriage return at each end."""
    content = MARK * mark + text.replace("\n", end).encode()
    *lines, last = content.removeprefix(MARK).split(b"\n")
    expected = [line.removesuffix(b"\r") for line in [*lines, *filter(None, [last])]]
    for reader in READERS:
        assert reader(COMPRESSIONS[compression](content)) == expected, reader


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_several_compressed_streams_are_one_text(compression):
    compress = COMPRESSIONS[compression]
    assert from_a_file(compress(TEXT + b"\n") + compress(TEXT)) == LINES * 2


@pytest.mark.parametrize("compression", list(COMPRESSIONS)[1:])
def test_a_broken_file_is_an_error_that_names_it(compression, tmp_path):
    whole = COMPRESSIONS[compression]("".join(f"{n * n}\n" for n in range(200)).encode())
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for broken in [*(whole[:end] for end in range(10, len(whole), 7)), flipped]:
        (tmp_path / "a").write_bytes(broken)
        with pytest.raises(InputError, match=f"{tmp_path / 'a'} is not a whole {compression}"):
            list(read_lines(tmp_path / "a"))


def test_zstandard_without_its_package_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"is compressed by Zstandard.*pip install.*zstd -d"):
        from_a_file(b"\x28\xb5\x2f\xfd" + bytes(20))


def zipped(content):
    import zipfile

    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr("a.txt", content)
    return file.getvalue()


def tarred(content):
    import tarfile

    with tarfile.open(fileobj=(file := io.BytesIO()), mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


OTHER_FORMATS = [
    (zipped(TEXT), "a zip archive"),
    (tarred(TEXT), "a tar archive"),
    (gzip.compress(tarred(TEXT)), "a tar archive"),
    (gzip.compress(gzip.compress(TEXT)), "compressed twice"),
    (b"7z\xbc\xaf\x27\x1c\0\4", "a 7z archive"),
    (b"%PDF-1.5\n%\xd0\xd4\n", "a PDF document"),
    (bytes(range(256)) * 4, "binary data"),
    (bytes(1000), "binary data"),
]


# The content is no part of a test's name: gzip writes the time into it.
@pytest.mark.parametrize(
    ("content", "name"), OTHER_FORMATS, ids=[name for _content, name in OTHER_FORMATS]
)
def test_other_formats_are_errors_that_name_them(content, name):
    for reader in (from_a_file, from_arriving_lines):
        with pytest.raises(InputError, match=name):
            reader(content)


@pytest.mark.parametrize(
    "text", ["ein\nüber\n", "привет мир\nкак\n", "你好，世界。\n今天天气很好\n"]
)
@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_other_unicode_encodings_are_errors(text, encoding):
    for reader in (from_a_file, from_arriving_lines, from_a_stream_of_standard_input):
        with pytest.raises(InputError, match=r"is UTF-(16|32); expected UTF-8|binary data"):
            reader(text.encode(encoding))


def test_every_character_may_stand_in_a_text():
    """Also NUL, and with bytes that are not UTF-8."""
    characters = [chr(code).encode() for code in range(0x3000) if code not in (10, 13)]
    assert from_a_file(b"\n".join([*characters, b"\xff"])) == [*characters, b"\xff"]


def test_a_text_of_an_old_mac_gives_one_warning(tmp_path, capsys):
    (tmp_path / "a").write_bytes(b"one\rtwo\r")
    for _ in range(2):
        assert list(read_lines(tmp_path / "a")) == [b"one\rtwo"]
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith(f"warning: {tmp_path / 'a'} is one line with 1 carriage return")


def test_a_path_that_is_no_file_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    for path, message in [
        (tmp_path / "missing", "is not a file. Check the path."),
        (tmp_path / "file" / "x", "is not a file. Check the path."),
        (tmp_path, "is not a file. Check the path."),
        (tmp_path / ("x" * 999), "cannot be read: File name too long."),
    ]:
        for read in (check_file, lambda path: list(read_lines(path))):
            with pytest.raises(InputError) as error:
                read(path)
            assert str(error.value) == f"{path} {message}"


def test_a_named_pipe_that_is_made_again_is_read_again(tmp_path):
    path = tmp_path / "pipe"
    for text in (b"one\n", b"two\n"):
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=[text])
        writer.start()
        assert read_texts(path) == read_texts(path) == [[text.decode().strip()]]
        writer.join()
        path.unlink()


def test_a_name_with_commas_is_one_path_when_the_file_exists(tmp_path):
    (tmp_path / "a,b").touch()
    assert split_paths(str(tmp_path / "a,b")) == [str(tmp_path / "a,b")]
    assert split_paths("a, b,") == ["a", "b"]


@pytest.mark.parametrize("name", ["c[1]", "*", "a?", "ü", "b\\c", os.fsdecode(b"\xff")])
def test_a_checkpoint_is_read_from_a_folder_of_any_name(name, tmp_path):
    import tensorflow as tf

    for number, folder in enumerate(["c1", "ab", name]):
        (tmp_path / folder).mkdir()
        variable = tf.Variable(number)
        checkpoint = tf.train.Checkpoint(x=variable)
        manager = tf.train.CheckpointManager(checkpoint, literal(tmp_path / folder), 1)
        manager.save(1)
    manager.save(2)
    for number, folder in enumerate(["c1", "ab", name]):
        state = tf.train.latest_checkpoint(literal(tmp_path / folder))
        checkpoint.restore(state)
        assert int(variable) == number
        assert len(list((tmp_path / folder).iterdir())) == 3
