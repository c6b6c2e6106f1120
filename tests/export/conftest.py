"""Fixtures of the export's tests: a stand-in for a server, and commands."""

import io
import socket
import sys

import pytest

NAME = "translator"  # as in export/serving/models.config


@pytest.fixture(scope="session")
def translator(exported):
    """The oracle: the translator that is exported."""
    return exported


@pytest.fixture(scope="session")
def stand_in(served):
    from stand_in_server import StandIn

    with StandIn(str(served), NAME) as server:
        yield server


@pytest.fixture
def command(monkeypatch, capsysbinary):
    """Runs a command's main() in this process; returns exit code, standard output and message."""

    def run_command(module, *words, stdin=b""):
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code, message = 0, ""
        try:
            module.main()
        except SystemExit as exit_:
            code, message = (exit_.code, "") if isinstance(exit_.code, int) else (1, exit_.code)
        return code, capsysbinary.readouterr().out.decode("utf-8"), message

    return run_command


@pytest.fixture(scope="session")
def free_port():
    """Finds a port of this machine that nobody uses."""

    def find() -> int:
        with socket.create_server(("127.0.0.1", 0)) as found:
            return found.getsockname()[1]

    return find
