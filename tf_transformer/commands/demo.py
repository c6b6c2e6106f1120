"""Serves a local page for translation: tf-transformer demo --run_dir runs/x."""

import contextlib
import importlib.util
import pathlib
import signal
import socket
import webbrowser
from typing import TYPE_CHECKING, Literal

from tf_transformer.config import DType
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import split_paths
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.demo.models import DemoModel

PRETRAINED = ("pretrained/tatoeba-en-de", "pretrained/tatoeba-de-en")  # of everyday text


def main(
    run_dir: LocalPath = "",
    others: LocalPath = "",
    saved_model: LocalPath = "",
    server: str = "",
    model: str = "translator",
    split: Literal["", "none", "sentences"] = "",
    host: str = "127.0.0.1",
    port: int = 8080,
    open_browser: bool = False,
    dtype: DType = "float32",
) -> None:
    """Serves a page that translates while you type; Ctrl-C ends it.

    Give --run_dir, --saved_model or --server. Without them, the page offers the models of everyday
    text, pretrained/tatoeba-en-de and pretrained/tatoeba-de-en, of the current folder or of the
    repository. Needs the extra `demo`.

    Args:
        run_dir: folder of a run. The page has sliders for the search, and shows the attention of a
            translator.
        others: folders of further runs, with commas between them. The page offers the choice, such
            as the other direction of a language pair.
        saved_model: folder of one version of an export, like served/x/1.
        server: host:port of the REST interface of TF Serving.
        model: name of the model on the server.
        split: sentences: a run divides each line into sentences. none: it translates lines whole.
            Empty: as its configuration says.
        host: address to listen on. The default accepts connections from this machine only.
        port: port to listen on; 0: any free port.
        open_browser: open the page in a browser.
        dtype: dtype of weights and computation of a run.
    """
    missing = [name for name in ("starlette", "uvicorn") if not importlib.util.find_spec(name)]
    if names := " and ".join(missing):
        raise InputError(f"the demo needs {names}: pip install 'tf_transformer[demo]'")
    listener = listen(host, port)
    url = f"http://{host}:{listener.getsockname()[1]}"
    models = load(run_dir, others, saved_model, server, model, dtype, split)

    import uvicorn

    from tf_transformer.demo.app import make_app

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    config = uvicorn.Config(make_app(models), log_level="warning", timeout_graceful_shutdown=3)
    print(f"{', '.join(m.name for m in models)}: {url} (Ctrl-C ends the demo)", flush=True)
    if open_browser:
        webbrowser.open(url)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listener])


def load(
    run_dir: str,
    others: str,
    saved_model: str,
    server: str,
    model: str,
    dtype: str,
    split: str = "",
) -> "list[DemoModel]":
    """Loads the models that the options of `main` name, and traces the graphs of the first."""
    if sum(map(bool, (run_dir, saved_model, server))) > 1:
        raise InputError("give only one of --run_dir, --saved_model and --server.")
    folders = [run_dir] if run_dir else []
    if not (run_dir or saved_model or server):
        folders = pretrained()
    folders += split_paths(others)
    runs = [Run.load(folder, split=split or None) for folder in folders]  # before TensorFlow
    if split and not runs:
        raise InputError("--split is for runs; an export divides texts if it was made to do so.")

    import_tensorflow()
    from tf_transformer.demo.models import RunModel, SavedModel, ServedModel

    models: list[DemoModel] = [RunModel(run, dtype) for run in runs]
    if server:
        models.insert(0, ServedModel(server, model))
    elif saved_model:
        models.insert(0, SavedModel(saved_model))
    first = models[0]
    for count in (1, 2):
        first.n_best([first.example] * count, ())
    if first.can_align:
        first.align([("a", "a")])
    return models


def pretrained() -> list[str]:
    """The pretrained runs of everyday text, in the current folder or else in the repository."""
    for folder in (pathlib.Path(), pathlib.Path(__file__).parents[2]):
        if runs := [run for name in PRETRAINED if (run := folder / name / "config.yaml").is_file()]:
            return [str(path.parent) for path in runs]
    raise InputError(
        "there is no model: expected --run_dir, --saved_model or --server, or the folder "
        f"{PRETRAINED[0]} in the current folder. To train a model: make demo; "
        "tf-transformer demo --run_dir runs/demo"
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; an `InputError` if the address cannot be used."""
    try:
        return socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error}. Give another --port; 0 takes a free port."
        ) from error
