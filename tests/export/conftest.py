"""Fixtures of the export's tests: a small SavedModel and a stand-in for a server."""

import io
import socket
import sys

import pytest

NAME = "translator"  # as in export/serving/models.config
LONGEST = 64  # tokens of a source; longer ones are cut


@pytest.fixture(scope="session")
def translator(run):
    """The oracle: the translator that is exported."""
    from tf_transformer.inference.translator import Translator

    return Translator.from_run(run, num_hypotheses=2, max_source_length=LONGEST)


@pytest.fixture(scope="session")
def served(translator, made_once):
    """Version 1 of a model, with warm-up requests."""
    from tf_transformer.export import warm_up

    def export(folder):
        translator.save(folder / NAME / "1")
        batches = warm_up.batches(warm_up.SHAPES, translator.tokenizer.encode)
        warm_up.write(folder / NAME / "1", batches)

    return made_once("served", export) / NAME / "1"


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
