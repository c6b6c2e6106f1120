"""The web application: one page, and JSON for its script."""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tf_transformer.demo.uploads import UPLOAD, UPLOADS, progress_of, read_upload
from tf_transformer.documents import FORMATS
from tf_transformer.files.writing import one_line
from tf_transformer.inference.predictor import NBest
from tf_transformer.serving.batches import Batches
from tf_transformer.serving.models import Options, TextModel
from tf_transformer.serving.requests import Limits, content_type, parse_json, require, run, shown

PAGE = pathlib.Path(__file__).with_name("page.html")
LIMITS = Limits()
LIMITS_OF_PAGE = {
    **{"bytes": LIMITS.request_bytes, "lines": LIMITS.texts, "characters": LIMITS.characters},
    **{"text": 20_000, "upload": UPLOAD},  # of the text field, in characters; of a file, in bytes
}
HEADERS = {
    # The whole page is one file, and connects to this server only.
    "Content-Security-Policy": (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def make_app(models: Sequence[TextModel], capacity: int = 2048) -> Starlette:
    """The application for models, among which the page offers the choice.

    `GET /` returns the page, and `GET /info` the features of the models. `POST /translate` takes
    {"texts": [...]} and values of the model's controls. `POST /align` takes texts and predictions.
    `POST /document` takes what `read_upload` reads and values of the controls, and answers with
    the lines of `progress_of`. All take values of the model's fields, and "model", the place of a
    model in `models`; the first is the default. An error is {"error": "one sentence"}. A full
    queue, of `capacity` lines, has the status 503.
    """
    demo = Demo(models, capacity)
    return Starlette(
        routes=[
            Route("/", demo.page),
            Route("/info", demo.info),
            Route("/translate", demo.translate, methods=["POST"]),
            Route("/align", demo.align, methods=["POST"]),
            Route("/document", demo.document, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refuse, Exception: fail},
        lifespan=demo.lifespan,
    )


class Demo:
    """The handlers of requests; see `make_app`."""

    def __init__(self, models: Sequence[TextModel], capacity: int):
        self._models = models
        self._capacity = capacity
        self._page = PAGE.read_text("utf-8")

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Runs the queue."""
        async with Batches(capacity=self._capacity) as self._batches:
            yield

    async def page(self, request: Request) -> Response:
        """The page."""
        return HTMLResponse(self._page, headers=HEADERS)

    async def info(self, request: Request) -> Response:
        """The features of the models and the limits of requests, as JSON."""
        names = ("name", "languages", "limits", "samples", "can_align")
        models = [
            {name: getattr(model, name) for name in names}
            | {
                group: {name: part._asdict() for name, part in getattr(model, group).items()}
                for group in ("controls", "fields")
            }
            for model in self._models
        ]
        content = {"models": models, "limits": LIMITS_OF_PAGE, "formats": list(FORMATS)}
        return JSONResponse(content, headers=HEADERS)

    async def translate(self, request: Request) -> Response:
        """The predictions for the texts of a request, as JSON."""
        body = await read_json(request)
        model, texts = self._read_model(body), read_texts(body, "texts")
        options = read_options(body, model) + read_fields(body, model)
        refuse_others(body)
        lines = await run(self._batches, model.n_best, texts, options)
        shown_lines = [
            [
                {
                    # A model can produce a newline that the text does not have.
                    "text": x.text if "\n" in text else one_line(x.text),
                    "score": x.score,
                    "notices": x.notices,
                    "word_probabilities": x.word_probabilities,
                    "unseen_words": x.unseen_words,
                }
                for x in line
            ]
            for text, line in zip(texts, lines, strict=True)
        ]
        return JSONResponse({"lines": shown_lines}, headers=HEADERS)

    async def align(self, request: Request) -> Response:
        """The attention weights between words for the pairs of a request, as JSON."""
        body = await read_json(request)
        model = self._read_model(body)
        require(model.can_align, "This model gives no attention weights.", status=404)
        texts, predictions = read_texts(body, "texts"), read_texts(body, "predictions")
        options = read_fields(body, model)
        refuse_others(body)
        count, given = len(texts), len(predictions)
        require(count == given, f"Expected as many predictions as texts, {count}, got {given}.")
        pairs = list(zip(texts, predictions, strict=True))
        weights = await run(self._batches, model.align, pairs, options)
        return JSONResponse({"weights": weights}, headers=HEADERS)

    async def document(self, request: Request) -> Response:
        """The translation of a document, in lines of JSON that tell its progress."""
        body = await read_json(request, UPLOADS)
        model = self._read_model(body)
        options = read_options(body, model) + read_fields(body, model)
        document = await read_upload(body, model.languages)
        refuse_others(body)

        async def n_best(texts: Sequence[str]) -> NBest:
            return [*await run(self._batches, model.n_best_of_document, texts, options)]

        lines = progress_of(document, n_best)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=HEADERS)

    def _read_model(self, body: dict[str, Any]) -> TextModel:
        """Takes the model out of a body."""
        place = body.pop("model", 0)
        last = len(self._models) - 1
        is_place = type(place) is int and 0 <= place <= last
        require(is_place, f"Expected 0 to {last} as model, got {shown(place)}.")
        return self._models[place]


async def read_json(request: Request, limits: Limits = LIMITS) -> dict[str, Any]:
    """Reads the JSON object of a request."""
    if content_type(request) != "application/json":
        # Pages of other sites need permission to send this type.
        raise HTTPException(415, "Expected the content type application/json.")
    return parse_json(await limits.read_body(request))


def read_options(body: dict[str, Any], model: TextModel) -> Options:
    """Takes the values of a model's controls out of a body, rounded to steps, without defaults."""
    options = {}
    for name, control in model.controls.items():
        if name not in body:
            continue
        value = body.pop(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        require(
            is_number and control.lowest <= value <= control.highest,
            f"Expected a number from {control.lowest} to {control.highest} as {name}, "
            f"got {shown(value)}.",
        )
        if value != control.default:
            options[name] = round(round(value / control.step) * control.step, 6)
    return tuple(options.items())


def read_texts(body: dict[str, Any], name: str) -> list[str]:
    """Takes the list of texts with a name out of a body."""
    return LIMITS.accept_texts(body.pop(name, None), name)


def read_fields(body: dict[str, Any], model: TextModel) -> Options:
    """Takes the values of a model's fields out of a body, without empty ones."""
    options = {}
    for name, field in model.fields.items():
        value = body.pop(name, "")
        is_known = isinstance(value, str) and (not field.choices or value in ("", *field.choices))
        expected = f"one of {', '.join(field.choices)}" if field.choices else "a text"
        require(is_known, f"Expected {expected} as {name}, got {shown(value)}.")
        if text := LIMITS.accept_text(value, f"The text {name}"):
            options[name] = text
    return tuple(options.items())


def refuse_others(body: dict[str, Any]) -> None:
    """Refuses a request with unknown keys: keys that are left in the body."""
    require(not body, f"This model has no option {shown(next(iter(body), ''))}.")


async def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request with an error."""
    assert isinstance(error, HTTPException)
    headers = {**HEADERS, **(error.headers or {})}
    return JSONResponse({"error": error.detail}, error.status_code, headers)


async def fail(request: Request, error: Exception) -> Response:
    """The answer to a request that shows a defect; the server's log has the traceback."""
    return JSONResponse({"error": "The model failed. The terminal shows the reason."}, 500)
