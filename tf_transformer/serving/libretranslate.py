"""LibreTranslate's API: https://docs.libretranslate.com."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tf_transformer.serving.api import Api
from tf_transformer.serving.formats import HTML, lines_of
from tf_transformer.serving.languages import is_named, name_of
from tf_transformer.serving.requests import require, shown

AUTO = "auto"  # a source that the client does not know


class LibreTranslate(Api):
    """LibreTranslate's API for one language pair."""

    name = "libretranslate"

    def routes(self) -> list[BaseRoute]:
        """The addresses and their handlers."""
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/frontend/settings", self.settings),
        ]

    def error(self, message: str, status: int) -> dict[str, Any]:
        """The content of an answer to a request that is refused."""
        return {"error": message}

    async def translate(self, request: Request) -> Response:
        """Translates `q`, a text or a list of texts."""
        given = await self.read(request)
        self.translations.require_key(given.get("api_key"), status=403)
        source, texts = self._read_languages(given), given.get("q")
        is_list = isinstance(texts, list)
        texts = self.translations.limits.accept_texts(texts if is_list else [texts], "q")
        kind = given.get("format") or "text"
        require(kind in ("text", "html"), f"The format {shown(kind)} is not supported.")
        most = _whole_number(given, "alternatives")
        form, count = (lines_of, 1 + most) if kind == "text" else (HTML, 1)
        translations = await self.translations(texts, form, count)
        columns: dict[str, list[Any]] = {
            "translatedText": [translation.texts[0] for translation in translations]
        }
        if source == AUTO:  # without a detector
            language = {"confidence": 0.0, "language": self.translations.source}
            columns["detectedLanguage"] = [language] * len(texts)
        if most:
            columns["alternatives"] = [translation.texts[1:] for translation in translations]
        return JSONResponse(columns if is_list else {x: rows[0] for x, rows in columns.items()})

    async def detect(self, request: Request) -> Response:
        """Refuses the request."""
        raise HTTPException(501, "This server has no language detector.")

    async def languages(self, request: Request) -> Response:
        """The languages of the model."""
        source, target = self.translations.source, self.translations.target
        targets = {source: [target]} | ({target: []} if source != target else {})
        return JSONResponse(
            [
                {"code": code, "name": name_of(code), "targets": listed}
                for code, listed in targets.items()
            ]
        )

    async def settings(self, request: Request) -> Response:
        """The settings of a page for users."""
        pair = {"source": self.translations.source, "target": self.translations.target}
        return JSONResponse(
            {
                "charLimit": self.translations.limits.characters,
                "frontendTimeout": 500,
                "apiKeys": self.translations.needs_key,
                "keyRequired": self.translations.needs_key,
                "suggestions": False,
                "filesTranslation": False,
                "supportedFilesFormat": [],
                "language": {x: {"code": code, "name": name_of(code)} for x, code in pair.items()},
            }
        )

    def _read_languages(self, given: dict[str, Any]) -> str:
        """The source as the request names it; refuses another pair than the model's."""
        pair = {"source": self.translations.source, "target": self.translations.target}
        for name, code in pair.items():
            value = given.get(name)
            require(bool(value), f"Invalid request: missing {name} parameter")
            is_known = isinstance(value, str) and is_named(code, value)
            is_known |= name == "source" and value == AUTO
            require(is_known, f"{shown(value)} is not supported as {name}; this model has {code}.")
        return given["source"]


def _whole_number(given: dict[str, Any], name: str) -> int:
    """The whole number with a name, in JSON or in a form; 0 without one."""
    value = given.get(name, 0)
    text = str(value)
    is_number = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) < 9
    require(is_number, f"Expected a whole number as {name}, got {shown(value)}.")
    return int(text)
