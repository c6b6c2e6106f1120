"""Standard error: notices of libraries are hidden, unless the program fails."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from tf_transformer.commands.stderr import without_notices
with without_notices():
    os.write(2, b"notice\\n")
    print("line of this project", file=sys.stderr)
    {end}
"""


def stderr_of(end, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"} | variables
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(end=end)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stderr.splitlines()


@pytest.mark.parametrize("end", ["pass", "sys.exit(1)"])
def test_notices_are_hidden(end):
    assert stderr_of(end) == ["line of this project"]


@pytest.mark.parametrize("end", ["os.abort()", "1 / 0", "os.kill(os.getpid(), 9)"])
def test_notices_are_printed_when_the_program_fails_or_dies(end):
    lines = stderr_of(end)
    assert lines[:2] == ["line of this project", "notice"]
    assert ("ZeroDivisionError: division by zero" in lines) == (end == "1 / 0")


def test_notices_are_printed_when_the_environment_asks_for_them():
    assert stderr_of("pass", TF_CPP_MIN_LOG_LEVEL="0") == ["notice", "line of this project"]
