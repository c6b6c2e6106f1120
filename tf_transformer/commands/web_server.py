"""A model behind a local server: its address, its model, and the process until Ctrl-C."""

import contextlib
import importlib.util
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from tf_transformer.serving.models import TextModel


def require_packages(command: str, *modules: str) -> None:
    """Raises an `InputError` when a module that a command needs is missing."""
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if missing:
        *first, last = missing
        names = f"{', '.join(first)} and {last}" if first else last
        raise InputError(
            f"the command {command} needs {names}: pip install 'tf_transformer[{command}]'"
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; an `InputError` if the address cannot be used."""
    try:
        listener = socket.create_server((host, port))
        # Its connections inherit this. Without it, an answer waits 40 ms for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error}. Give another --port; 0 takes a free port."
        ) from error


def address(listener: socket.socket) -> str:
    """The address of a socket, like http://127.0.0.1:8080."""
    host, port, *_ = listener.getsockname()
    return f"http://{host}:{port}"


def require_one_kind(run_dir: str, saved_model: str, server: str) -> None:
    """Raises an `InputError` when several models are given."""
    if sum(map(bool, (run_dir, saved_model, server))) > 1:
        raise InputError("give only one of --run_dir, --saved_model and --server.")


def load_models(
    runs: Sequence[Run], saved_model: str, server: str, model: str, dtype: str
) -> "list[TextModel]":
    """Loads the models that options name, and traces the graphs of the first."""
    import_tensorflow()
    from tf_transformer.serving.models import RunModel, SavedModel, ServedModel

    models: list[TextModel] = [RunModel(run, dtype) for run in runs]
    if server:
        models.insert(0, ServedModel(server, model))
    elif saved_model:
        models.insert(0, SavedModel(saved_model))
    first = models[0]
    for count in (1, 2):
        first.n_best([first.example] * count, ())
    return models


def serve(app: "Starlette", listener: socket.socket) -> None:
    """Runs an application until Ctrl-C."""
    import uvicorn

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listener])
