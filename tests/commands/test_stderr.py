"""Standard error: notices of libraries are hidden, unless the program fails."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from tf_transformer.commands.standard_streams import without_notices
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


NOTICES = """
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795738924.852137    8633 cudart_stub.cc:31] Could not find cuda drivers
2026-11-27 00:22:02.123456: W tensorflow/core/x.cc:1] a warning
To enable the following instructions: AVX2, rebuild TensorFlow
E0000 00:00:1795738925.776127    8633 cuda_platform.cc:52] failed call to cuInit: INTERNAL
E0000 00:00:1795738925.776127    8633 cuda_dnn.cc:8] Unable to register cuDNN factory
"""
ERRORS = """
E0000 00:00:1795738925.776127    8633 cuda_driver.cc:1] out of memory
F0000 00:00:1795738925.776127    8633 x.cc:1] Check failed
"""


@pytest.mark.parametrize("end", ["1 / 0", "os.abort()"])
def test_a_failure_is_printed_without_the_notices_of_every_start(end):
    write = f"os.write(2, {(NOTICES.strip() + ERRORS).encode()!r})"
    lines = stderr_of(f"{write}; {end}")
    assert lines[:4] == ["line of this project", "notice", *ERRORS.split("\n")[1:3]]
    assert not set(lines) & set(NOTICES.strip().split("\n"))


def test_notices_are_printed_when_the_environment_asks_for_them():
    assert stderr_of("pass", TF_CPP_MIN_LOG_LEVEL="0") == ["notice", "line of this project"]
