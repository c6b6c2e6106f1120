"""Fixtures of the servers' tests: a small run as a model, and a server of a model in capitals."""

import contextlib
import re
import threading

import httpx
import pytest

from tf_transformer.commands.web_server import address, listen
from tf_transformer.errors import InputError
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction
from tf_transformer.run.run import Run


@pytest.fixture(scope="session")
def model(run):
    from tf_transformer.serving.models import RunModel

    return RunModel(Run.load(run))


class Upper:
    """A model that answers in capitals, then in capitals backwards, when it is let go."""

    name = "upper"
    keeps_tags = False

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.go.set()

    def n_best(self, texts, options):
        self.go.wait(10)
        self.batches.append(list(texts))
        if "unreachable" in texts:
            raise InputError("no answer from the model.")
        if "defect" in texts:
            raise ZeroDivisionError
        return [
            [
                Prediction(text.upper(), -1.0, (Notice.LENGTH_LIMIT,) * (len(text) > 50)),
                Prediction(text.upper()[::-1], -2.0),
            ]
            for text in texts
        ]


class UpperBetweenTags(Upper):
    """The same, with each tag as it was."""

    keeps_tags = True

    def n_best(self, texts, options):
        rows = super().n_best(texts, options)
        for text, row in zip(texts, rows, strict=True):
            pieces = re.split("(<[^>]*>|&[a-z]+;)", text)
            pieces[::2] = [piece.upper() for piece in pieces[::2]]
            row[0] = row[0]._replace(text="".join(pieces))
        return rows


@pytest.fixture
def upper_between_tags():
    return UpperBetweenTags()


@pytest.fixture
def upper():
    return Upper()


@contextlib.contextmanager
def served(model, languages=("en", "de"), origins=(), limits=None, **options):
    """A client of a server of a model, which runs in a thread."""
    import uvicorn

    from tf_transformer.serving.app import make_app
    from tf_transformer.serving.requests import Limits
    from tf_transformer.serving.translations import Translations

    translations = Translations(model, languages, limits or Limits(), **options)
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
