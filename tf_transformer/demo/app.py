"""The web application: one page, and JSON for its script."""

import contextlib
import json
import math
import pathlib
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tf_transformer.demo.batches import Batches, FullError
from tf_transformer.demo.models import DemoModel, Options
from tf_transformer.errors import InputError
from tf_transformer.files.writing import one_line
from tf_transformer.text.normalization import well_formed

PAGE = pathlib.Path(__file__).with_name("page.html")
LIMITS = {"bytes": 2**18, "lines": 128, "characters": 2000, "text": 20_000, "upload": 2**22}
HEADERS = {
    # The whole page is one file, and connects to this server only.
    "Content-Security-Policy": (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def make_app(models: Sequence[DemoModel], capacity: int = 2048) -> Starlette:
    """The application for models, among which the page offers the choice.

    `GET /` returns the page, and `GET /info` the features of the models. `POST /translate` takes
    {"texts": [...]} and values of the model's controls. `POST /align` takes texts and predictions.
    Both take "model", the place of a model in `models`; the first is the default. An error is
    {"error": "one sentence"}. A full queue has the status 503.

    Args:
        models: the models, from texts to predictions.
        capacity: most lines in the queue.
    """
    demo = Demo(models, capacity)
    return Starlette(
        routes=[
            Route("/", demo.page),
            Route("/info", demo.info),
            Route("/translate", demo.translate, methods=["POST"]),
            Route("/align", demo.align, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refuse, Exception: fail},
        lifespan=demo.lifespan,
    )


class Demo:
    """The handlers of requests; see `make_app`."""

    def __init__(self, models: Sequence[DemoModel], capacity: int):
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
        models = [
            {
                "name": model.name,
                "languages": model.languages,
                "limits": model.limits,
                "controls": {name: each._asdict() for name, each in model.controls.items()},
                "samples": model.samples,
                "can_align": model.can_align,
            }
            for model in self._models
        ]
        return JSONResponse({"models": models, "limits": LIMITS}, headers=HEADERS)

    async def translate(self, request: Request) -> Response:
        """The predictions for the texts of a request, as JSON."""
        body = await read_json(request)
        model, texts = self._read_model(body), read_texts(body, "texts")
        options = read_options(body, model)
        refuse_others(body)
        lines = await self._run(model.n_best, texts, options)
        return JSONResponse(
            {
                "lines": [
                    [
                        {
                            "text": one_line(prediction.text),
                            "score": prediction.score,
                            "notices": prediction.notices,
                        }
                        for prediction in line
                    ]
                    for line in lines
                ]
            },
            headers=HEADERS,
        )

    async def align(self, request: Request) -> Response:
        """The attention weights between words for the pairs of a request, as JSON."""
        body = await read_json(request)
        model = self._read_model(body)
        if not model.can_align:
            raise HTTPException(404, "This model gives no attention weights.")
        texts, predictions = read_texts(body, "texts"), read_texts(body, "predictions")
        refuse_others(body)
        if len(texts) != len(predictions):
            raise HTTPException(
                400, f"Expected as many predictions as texts, {len(texts)}, got {len(predictions)}."
            )
        weights = await self._run(model.align, list(zip(texts, predictions, strict=True)))
        return JSONResponse({"weights": weights}, headers=HEADERS)

    def _read_model(self, body: dict[str, Any]) -> DemoModel:
        """Takes the model out of a body."""
        place = body.pop("model", 0)
        if type(place) is not int or not 0 <= place < len(self._models):
            raise HTTPException(
                400, f"Expected 0 to {len(self._models) - 1} as model, got {shown(place)}."
            )
        return self._models[place]

    async def _run(self, function: Any, items: Sequence[Any], *options: Hashable) -> Sequence[Any]:
        try:
            return await self._batches(function, items, *options)
        except FullError:
            raise HTTPException(
                503, "The server is busy. Try again in a second.", {"Retry-After": "1"}
            ) from None
        except InputError as error:
            raise HTTPException(502, str(error)) from error


async def read_json(request: Request) -> dict[str, Any]:
    """Reads the JSON object of a request.

    Raises:
        HTTPException: for another content type, more than `LIMITS["bytes"]`, or other content.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # Pages of other sites need permission to send this type.
        raise HTTPException(415, "Expected the content type application/json.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LIMITS["bytes"]:
            raise HTTPException(413, f"A request may have at most {LIMITS['bytes']:,} bytes.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The request is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise HTTPException(400, 'Expected a JSON object like {"texts": ["one line"]}.')
    return content


def read_options(body: dict[str, Any], model: DemoModel) -> Options:
    """Takes the values of a model's controls out of a body, rounded to steps, without defaults.

    Raises:
        HTTPException: for a value out of range.
    """
    options = {}
    for name, control in model.controls.items():
        if name not in body:
            continue
        value = body.pop(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not control.lowest <= value <= control.highest:
            raise HTTPException(
                400,
                f"Expected a number from {control.lowest} to {control.highest} as {name}, "
                f"got {shown(value)}.",
            )
        if value != control.default:
            options[name] = round(round(value / control.step) * control.step, 6)
    return tuple(options.items())


def read_texts(body: dict[str, Any], name: str) -> list[str]:
    """Takes a list of texts out of a body.

    Args:
        body: the JSON object of the request.
        name: the key of the list.

    Raises:
        HTTPException: for a missing list, another value, too many texts, or a text that is too
            long.
    """
    texts = body.pop(name, None)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(400, f"Expected a list of texts as {name}, got {shown(texts)}.")
    if not 0 < len(texts) <= LIMITS["lines"]:
        raise HTTPException(
            400, f"Expected 1 to {LIMITS['lines']} {name} in a request, got {len(texts)}."
        )
    for number, text in enumerate(texts, 1):
        if len(text) > LIMITS["characters"]:
            raise HTTPException(
                413,
                f"Text {number} of {name} has {len(text):,} characters; "
                f"at most {LIMITS['characters']:,} are allowed.",
            )
    return list(map(well_formed, texts))


def refuse_others(body: dict[str, Any]) -> None:
    """Refuses a request with unknown keys: keys that are left in the body."""
    if body:
        raise HTTPException(400, f"This model has no option {shown(next(iter(body)))}.")


def shown(value: Any) -> str:
    """The first 40 characters of a value as JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "..."


async def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request with an error."""
    assert isinstance(error, HTTPException)
    headers = {**HEADERS, **(error.headers or {})}
    return JSONResponse({"error": error.detail}, error.status_code, headers)


async def fail(request: Request, error: Exception) -> Response:
    """The answer to a request that shows a defect; the server's log has the traceback."""
    return JSONResponse({"error": "The model failed. The terminal shows the reason."}, 500)
