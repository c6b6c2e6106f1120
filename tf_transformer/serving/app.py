"""The web application: the APIs, metrics and health."""

from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from tf_transformer.serving.deepl import DeepL
from tf_transformer.serving.libretranslate import LibreTranslate
from tf_transformer.serving.openai import OpenAi
from tf_transformer.serving.translations import Translations


def make_app(translations: Translations, origins: Sequence[str] = ()) -> Starlette:
    """The application for a model.

    OpenAI's API is under /v1, DeepL's under /v2 and /v3, and LibreTranslate's at the root. `GET
    /health` answers when the server runs, and `GET /metrics` has the metrics for Prometheus.
    Scripts of `origins` may read answers; `*` stands for all pages.
    """

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        return Response(translations.metrics.page(), media_type=CONTENT_TYPE_LATEST)

    deepl = DeepL(translations).app()
    cors = Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"]
    )
    return Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", metrics),
            Mount("/v1", OpenAi(translations).app()),
            Mount("/v2", deepl),
            Mount("/v3", deepl),
            Mount("/", LibreTranslate(translations).app()),
        ],
        middleware=[cors] if origins else [],
        lifespan=translations.lifespan,
    )
