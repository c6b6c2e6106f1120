"""Fixtures of the servers' tests: a small run as a model, and a server of a model in capitals."""

import contextlib
import threading

import httpx
import pytest
from capital_model import Upper, UpperBetweenTags

from tf_transformer.commands.web_server import address, listen
from tf_transformer.run.run import Run


@pytest.fixture(scope="session")
def model(run):
    from tf_transformer.serving.models import RunModel

    return RunModel(Run.load(run))


@pytest.fixture
def upper_between_tags():
    return UpperBetweenTags()


@pytest.fixture
def upper():
    return Upper()


@contextlib.contextmanager
def served(model, *pairs, origins=(), limits=None, **options):
    """A client of a server of a model, which runs in a thread, with directions or its own."""
    import uvicorn

    from tf_transformer.serving.app import make_app
    from tf_transformer.serving.requests import Limits
    from tf_transformer.serving.translations import Translations

    translations = Translations(model, pairs or model.directions, limits or Limits(), **options)
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(make_app(translations, origins), log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with httpx.Client(base_url=address(listener), timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(60)


@pytest.fixture
def serve():
    """The function `served`, whose servers end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *words, **options: stack.enter_context(served(*words, **options))


@pytest.fixture
def client(serve, upper):
    return serve(upper)
