"""A fresh process that runs a SavedModel in a session, as a server does."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from tf_transformer.machine.gpus import WITHOUT_GPUS


class Request(NamedTuple):
    """A request in the format of TF Serving's REST interface."""

    signature_name: str
    inputs: dict[str, list[str]]


@dataclass(frozen=True)
class Session:
    """A process of `run_in_session.py`; `session` starts it."""

    process: subprocess.Popen
    output: IO[bytes]  # the file with its standard output
    errors: IO[bytes]  # the file with its errors

    def load(self) -> None:
        """Lets the process load the SavedModel."""
        self._write("\n")

    def send(self, requests: Sequence[Request]) -> None:
        """Sends requests after `load`. The process answers them while this one goes on."""
        self._write("".join(json.dumps(request._asdict()) + "\n" for request in requests))

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs for each request, by name; waits for them, and ends the process.

        Raises:
            RuntimeError: when the process fails.
        """
        self.process.communicate()
        for file in (self.output, self.errors):
            file.seek(0)
        output, errors = self.output.read().decode("utf-8"), self.errors.read().decode("utf-8")
        if self.process.returncode:
            raise RuntimeError(f"the export does not run in a session:\n{errors}")
        return [json.loads(line)["outputs"] for line in output.split("\n")[:-1]]

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # `outputs` reports a process that has failed
            if self.process.stdin:
                self.process.stdin.write(text.encode())
                self.process.stdin.flush()


@contextlib.contextmanager
def session(saved_model: pathlib.Path) -> Iterator[Session]:
    """Starts a process, which imports TensorFlow while this one writes the SavedModel.

    It computes on the CPU, because a training run may hold the memory of all GPUs. The folder need
    not exist before `Session.load`.
    """
    program = pathlib.Path(__file__).with_name("run_in_session.py")
    words = [sys.executable, str(program), str(saved_model), "--requests", "--wait"]
    with (
        # A full pipe would stop the process until this one reads, so the outputs go to files.
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            env=os.environ | WITHOUT_GPUS,
        ) as process,
    ):
        yield Session(process, output, errors)
