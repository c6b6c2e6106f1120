"""An interface for clients: the base class."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from tf_transformer.serving.requests import content_type, parse_form, parse_json
from tf_transformer.serving.translations import Translations


class Api(ABC):
    """Addresses and the form of requests, answers and errors that the clients of a service know.

    Class attributes:
        name: in the metrics.
    """

    name: ClassVar[str]

    def __init__(self, translations: Translations):
        self.translations = translations

    @abstractmethod
    def routes(self) -> list[BaseRoute]:
        """The addresses and their handlers."""

    @abstractmethod
    def error(self, message: str, status: int) -> dict[str, Any]:
        """The content of an answer to a request that is refused."""

    def app(self) -> ASGIApp:
        """The application."""
        handlers: Any = {HTTPException: self._refuse, Exception: self._fail}
        app = Starlette(routes=self.routes(), exception_handlers=handlers)
        return self.translations.metrics.measured(app, self.name)

    async def read(self, request: Request) -> dict[str, Any]:
        """The values of a request by name, from its address and its body: JSON, or a form."""
        given: dict[str, Any] = parse_form(request.url.query)
        body = await self.translations.limits.read_body(request)
        kind = content_type(request)
        if kind == "application/json":
            return given | parse_json(body)
        if body and kind != "application/x-www-form-urlencoded":
            expected = "application/json or application/x-www-form-urlencoded"
            raise HTTPException(415, f"Expected the content type {expected}.")
        return given | parse_form(body)

    async def _refuse(self, request: Request, error: HTTPException) -> Response:
        content = self.error(error.detail, error.status_code)
        return JSONResponse(content, error.status_code, error.headers)

    async def _fail(self, request: Request, error: Exception) -> Response:
        content = self.error("The model failed; see the server's log.", 500)
        return JSONResponse(content, 500, {"Connection": "close"})  # as the server then does
