"""Opens a local page to translate on: tf-transformer demo --run_dir runs/x."""

import contextlib
import importlib.util
import pathlib
import signal
import socket
import webbrowser
from typing import TYPE_CHECKING

from tf_transformer.config import DType
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.demo.models import DemoModel

PRETRAINED = "pretrained/tatoeba-en-de"


def main(
    run_dir: str = "",
    saved_model: str = "",
    server: str = "",
    model: str = "translator",
    host: str = "127.0.0.1",
    port: int = 8080,
    open_browser: bool = False,
    dtype: DType = "float32",
) -> None:
    """Serves a page that translates while you type; Ctrl-C ends it.

    Give one of --run_dir, --saved_model and --server; without them, the page uses the run
    pretrained/tatoeba-en-de in the current folder or in the repository. Needs the extra `demo`.

    Args:
        run_dir: a run's folder; the page has sliders for the search, and attention if the run
            translates.
        saved_model: the folder of one version of an export, served/x/1.
        server: host:port of the REST interface of TF Serving.
        model: the model's name on the server.
        host: address to listen on; the default accepts this machine only.
        port: port to listen on; 0: a free one.
        open_browser: whether to open the page in a browser.
        dtype: of weights and computation of a run.
    """
    require_packages()
    listener = listen(host, port)
    url = f"http://{host}:{listener.getsockname()[1]}"
    loaded = load(run_dir, saved_model, server, model, dtype)

    import uvicorn

    from tf_transformer.demo.app import make_app

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    config = uvicorn.Config(make_app(loaded), log_level="warning", timeout_graceful_shutdown=3)
    print(f"{loaded.name}: {url} (Ctrl-C ends the demo)", flush=True)
    if open_browser:
        webbrowser.open(url)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listener])


def load(run_dir: str, saved_model: str, server: str, model: str, dtype: str) -> "DemoModel":
    """The model that the options name, after a first prediction, which traces its graphs.

    Raises:
        InputError: for several of the three, for none where there is no pretrained run, and
            when the model cannot be loaded.
    """
    if sum(map(bool, (run_dir, saved_model, server))) > 1:
        raise InputError("give only one of --run_dir, --saved_model and --server.")
    if not (run_dir or saved_model or server):
        run_dir = pretrained()

    run = Run.load(run_dir) if run_dir else None  # before TensorFlow is imported

    from tf_transformer.demo.models import RunModel, SavedModel, ServedModel

    loaded: DemoModel
    if server:
        loaded = ServedModel(server, model)
    elif run:
        loaded = RunModel(run, dtype)
    else:
        loaded = SavedModel(saved_model)
    for count in (1, 2):
        loaded.n_best([loaded.example] * count, ())
    if loaded.can_align:
        loaded.align([("a", "a")])
    return loaded


def pretrained() -> str:
    """The pretrained run in the current folder, or else in the repository.

    Raises:
        InputError: when there is none.
    """
    for folder in (pathlib.Path(), pathlib.Path(__file__).parents[2]):
        if (folder / PRETRAINED).is_dir():
            return str(folder / PRETRAINED)
    raise InputError(
        f"expected --run_dir, --saved_model or --server, or the folder {PRETRAINED} of the "
        "repository in the current folder. Train a run, for example: make demo; "
        "tf-transformer demo --run_dir runs/demo"
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: when the address cannot be used.
    """
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error}. Give another --port; 0 takes a free one."
        ) from error


def require_packages() -> None:
    """Raises an `InputError` when packages of the extra `demo` are not installed."""
    if missing := [name for name in ("starlette", "uvicorn") if not importlib.util.find_spec(name)]:
        raise InputError(
            f"the demo needs {' and '.join(missing)}: pip install 'tf_transformer[demo]'"
        )
