"""Serves a local page for translation: tf-transformer demo --run_dir runs/x."""

import pathlib
import webbrowser
from typing import TYPE_CHECKING, Any, Literal

from tf_transformer.commands.web_server import (
    address,
    listen,
    load_models,
    require_one_kind,
    require_packages,
    serve,
)
from tf_transformer.config import DType
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import split_paths
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.serving.models import TextModel

PRETRAINED = ("pretrained/tatoeba-en-de", "pretrained/tatoeba-de-en")  # of everyday text


def main(
    run_dir: LocalPath = "",
    others: LocalPath = "",
    saved_model: LocalPath = "",
    server: str = "",
    model: str = "translator",
    split: Literal["", "none", "sentences"] = "",
    keep: tuple[str, ...] | str = "",
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
        keep: spans that stay in the translations of a run, such as common. Empty: those that its
            configuration names.
        host: address to listen on. The default accepts connections from this machine only.
        port: port to listen on; 0: any free port.
        open_browser: open the page in a browser.
        dtype: dtype of weights and computation of a run.
    """
    require_packages("demo", "starlette", "uvicorn")
    listener = listen(host, port)
    models = load(run_dir, others, saved_model, server, model, dtype, split=split, keep=keep)

    from tf_transformer.demo.app import make_app

    url = address(listener)
    print(f"{', '.join(m.name for m in models)}: {url} (Ctrl-C ends the demo)", flush=True)
    if open_browser:
        webbrowser.open(url)
    serve(make_app(models), listener)


def load(
    run_dir: str,
    others: str,
    saved_model: str,
    server: str,
    model: str,
    dtype: str,
    **search: Any,
) -> "list[TextModel]":
    """Loads the models that the options of `main` name, and traces the graphs of the first."""
    require_one_kind(run_dir, saved_model, server)
    folders = [run_dir] if run_dir else []
    if not (run_dir or saved_model or server):
        folders = pretrained()
    folders += split_paths(others)
    search = {name: value for name, value in search.items() if value}
    runs = [_load(folder, **search) for folder in folders]  # before TensorFlow
    if search and not runs:
        raise InputError(f"--{min(search)} is for runs; an export does what it was made to do.")
    models = load_models(runs, saved_model, server, model, dtype)
    if models[0].can_align:
        models[0].align([(models[0].example, "a")])
    return models


def _load(folder: str, **options: Any) -> Run:
    """Loads a run. Words of translations get probabilities, which the page shows."""
    run = Run.load(folder, **options)
    if run.config.task.name == "translation":
        run = Run.load(folder, **options, word_probabilities=True)
    return run


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
