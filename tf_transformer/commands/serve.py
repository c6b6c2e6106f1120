"""Serves a translator with the APIs of other services: tf-transformer serve --run_dir runs/x."""

from collections.abc import Sequence
from typing import Any

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
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.run.directions import Direction, directions_of
from tf_transformer.run.run import Run


def main(
    run_dir: LocalPath = "",
    saved_model: LocalPath = "",
    server: str = "",
    model: str = "translator",
    source_language: str = "",
    target_language: str = "",
    host: str = "127.0.0.1",
    port: int = 5000,
    api_keys: LocalPath = "",
    allow_origin: str = "",
    max_bytes: int = 2**20,
    max_texts: int = 128,
    max_characters: int = 10_000,
    max_queued: int = 2048,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Serves a translator to programs that speak LibreTranslate's, DeepL's or OpenAI's API.

    Give --run_dir, --saved_model or --server. Ctrl-C ends the server. LibreTranslate's API is at
    the root, DeepL's under /v2, and OpenAI's under /v1. GET /metrics is for Prometheus, and GET
    /health for programs that watch the server. Needs the extra `serve`.

    Args:
        run_dir: folder of the run of a translator; a,b,c for an ensemble of three runs.
        saved_model: folder of one version of an export, like served/x/1.
        server: host:port of the REST interface of TF Serving.
        model: name of the model on the server.
        source_language: code of the source language, like en; empty: the languages of the run.
        target_language: code of the target language, like de; empty: the languages of the run.
            Requests to a model of several directions choose among those that both options leave.
            For a model on TF Serving, list its languages: de,fr.
        host: address to listen on. The default accepts connections from this machine only.
        port: port to listen on; 0: any free port.
        api_keys: file with keys, one per line. A request must have one of them. Empty: requests
            need no key.
        allow_origin: pages whose scripts may read answers, like https://example.org, with commas
            between them; *: all pages. Empty: none.
        max_bytes: largest request, in bytes.
        max_texts: most texts in a request.
        max_characters: longest text, in characters.
        max_queued: most lines of text that wait; further requests are refused with status 503.
        dtype: dtype of weights and computation of a run.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    require_packages("serve", "starlette", "uvicorn", "prometheus_client", "babel")
    require_one_kind(run_dir, saved_model, server)
    if not (run_dir or saved_model or server):
        raise InputError("expected a model: give --run_dir, --saved_model or --server.")
    given = [f"--{name}" for name, value in decode_options.items() if value is not None]
    if given and not run_dir:
        raise InputError(f"an export has its own search. Leave out {', '.join(given)}.")
    limits = {"bytes": max_bytes, "texts": max_texts, "characters": max_characters}
    for name, value in {**limits, "queued": max_queued}.items():
        if value < 1:
            raise InputError(f"--max_{name} must be at least 1, got {value}.")
    keys = read_keys(api_keys) if api_keys else []
    runs = [Run.load(run_dir, **decode_options)] if run_dir else []
    given_languages = (source_language, target_language)
    if not saved_model:  # only TensorFlow's import makes the languages of an export known
        chosen(given_languages, directions_in(runs))
    listener = listen(host, port)
    (loaded,) = load_models(runs, saved_model, server, model, dtype)

    from tf_transformer.serving.app import make_app
    from tf_transformer.serving.requests import Limits
    from tf_transformer.serving.translations import Translations

    directions = chosen(given_languages, loaded.directions)
    translations = Translations(
        loaded, directions, Limits(max_bytes, max_texts, max_characters), max_queued, keys
    )
    name = (
        f"{loaded.name}, {', '.join(f'{source} to {target}' for source, target, _ in directions)}"
    )
    print(f"{name}: {address(listener)} (Ctrl-C ends the server)", flush=True)
    serve(make_app(translations, split_paths(allow_origin)), listener)


def read_keys(path: str) -> list[str]:
    """The lines of a file of keys."""
    keys = [key for line in read_texts(path)[0] if (key := line.strip())]
    if not keys:
        raise InputError(f"{path} has no key. Write one per line.")
    return keys


def directions_in(runs: Sequence[Run]) -> Sequence[Direction]:
    """The directions of the run of a translator; () without a run, or if they are unknown."""
    for run in runs:
        if (task := run.config.task.name) != "translation":
            raise InputError(f"expected the run of a translator, got one for {task}.")
    return directions_of(runs[0]) if runs else ()


def chosen(given: Sequence[str], known: Sequence[Direction]) -> Sequence[Direction]:
    """The directions of a model that have the given languages; "": any.

    A single direction gets the given languages, whatever its training text says. Several targets
    with commas between them are the languages of a model that does not say them itself.
    """
    if len(known) < 2:
        (source, target, tag), *_ = [*known, Direction("", "")]
        source, targets = given[0] or source, split_paths(given[1] or target)
        if not (source and targets):
            raise InputError(
                "the languages of the model are unknown. Give --source_language and "
                "--target_language, such as en and de."
            )
        tags = [f">>{name}<<" for name in targets] if len(targets) > 1 else [tag]
        return [Direction(source, *pair) for pair in zip(targets, tags, strict=True)]
    matching = [x for x in known if given[0] in ("", x.source) and given[1] in ("", x.target)]
    if not matching:
        listed = ", ".join(f"{source} to {target}" for source, target, _ in known)
        raise InputError(
            f"the model does not translate from {given[0] or 'any language'} to "
            f"{given[1] or 'any language'}; it translates {listed}."
        )
    return matching
