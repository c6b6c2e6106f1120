"""Closed, full and broken streams, and terminals of other encodings, as a shell starts programs."""

import itertools
import os
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parents[2] / "tf_transformer"
PROGRAM = f"""
import os, runpy, sys
streams = runpy.run_path({str(PACKAGE / "commands" / "standard_streams.py")!r})
with streams["standard_streams"]():
    {{body}}
"""
NO_SPACE = "error: the output cannot be written: No space left on device.\n"
CLOSED = "error: standard input or standard output is closed.\n"


def shell(body, redirections="", **variables):
    """Exit code, standard output and standard error of a program that a shell starts."""
    process = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {redirections}', sys.executable, PROGRAM.format(body=body)],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return process.returncode, process.stdout.decode(), process.stderr.decode()


WORK = 'open("{}", "w").write("done"); print("result"); print("message", file=sys.stderr)'


@pytest.mark.parametrize(
    "closed", [each for n in range(4) for each in itertools.combinations(("0<", "1>", "2>"), n)]
)
def test_closed_streams_change_nothing_else(closed, tmp_path):
    """No other file gets the number of a closed stream, and a lost result is an error."""
    code, output, error = shell(WORK.format(tmp_path / "x"), "".join(f"{c}&- " for c in closed))
    assert (tmp_path / "x").read_text() == "done"
    assert code == ("1>" in closed)
    assert output == "result\n" * ("1>" not in closed)
    assert error == ("message\n" + CLOSED * ("1>" in closed)) * ("2>" not in closed)


def test_help_for_a_closed_standard_output_is_an_error():
    assert shell('print("help"); sys.exit(0)', ">&-") == (1, "", CLOSED)


def test_a_closed_standard_input_cannot_be_read():
    assert shell("sys.stdin.read()", "<&-")[::2] == (1, CLOSED)


@pytest.mark.parametrize("body", ['print("x")', 'print("x" * 10**6)', 'print("x"); sys.exit()'])
def test_a_full_disk_is_an_error(body):
    assert shell(body, ">/dev/full") == (1, "", NO_SPACE)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    code, _, error = shell(f"raise PermissionError(13, 'Permission denied', {str(tmp_path)!r})")
    assert (code, error) == (1, f"error: {tmp_path}: Permission denied.\n")


@pytest.mark.parametrize("body", ['print("x\\n" * 10**6)', 'print("x\\n" * 10**6); sys.exit()'])
def test_a_reader_that_has_read_enough_ends_the_program_quietly(body):
    assert shell(body, "| head -n 1")[1:] == ("x\n", "")


def test_a_defect_keeps_its_traceback():
    for error in ("ValueError", "FileNotFoundError"):
        assert "Traceback" in shell(f"raise {error}")[2]


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_characters_that_a_terminal_cannot_show_are_escaped(encoding):
    code, output, error = shell(
        r'print("\u0416"); print("\u0416", file=sys.stderr); sys.stdout.buffer.write(b"\xc3\xa4")',
        PYTHONIOENCODING=encoding,
    )
    assert (code, error) == (0, "\\u0416\n")
    assert sorted(output.split("\n")) in (["\\u0416", "ä"], ["", "\\u0416", "ä"], ["ä\\u0416", ""])
