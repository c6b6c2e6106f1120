"""LibreTranslate's API: https://docs.libretranslate.com."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tf_transformer.run.directions import Direction
from tf_transformer.serving.api import Api
from tf_transformer.serving.formats import HTML, lines_of
from tf_transformer.serving.languages import name_of
from tf_transformer.serving.requests import require, shown

AUTO = "auto"  # a source that the client does not know


class LibreTranslate(Api):
    """LibreTranslate's API."""

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
        direction, texts = self._read_direction(given), given.get("q")
        is_list = isinstance(texts, list)
        texts = self.translations.limits.accept_texts(texts if is_list else [texts], "q")
        kind = given.get("format") or "text"
        require(kind in ("text", "html"), f"The format {shown(kind)} is not supported.")
        most = _whole_number(given, "alternatives")
        form, count = (lines_of, 1 + most) if kind == "text" else (HTML, 1)
        translations = await self.translations(texts, direction, form, count)
        columns: dict[str, list[Any]] = {
            "translatedText": [translation.texts[0] for translation in translations]
        }
        if given["source"] == AUTO:  # without a detector
            language = {"confidence": 0.0, "language": direction.source}
            columns["detectedLanguage"] = [language] * len(texts)
        if most:
            columns["alternatives"] = [translation.texts[1:] for translation in translations]
        return JSONResponse(columns if is_list else {x: rows[0] for x, rows in columns.items()})

    async def detect(self, request: Request) -> Response:
        """Refuses the request."""
        raise HTTPException(501, "This server has no language detector.")

    async def languages(self, request: Request) -> Response:
        """The languages of the model, each with its targets."""
        directions, known = self.translations.directions, self.translations
        targets = {
            code: [x.target for x in directions if x.source == code]
            for code in dict.fromkeys([*known.sources, *known.targets])
        }
        return JSONResponse(
            [
                {"code": code, "name": name_of(code), "targets": listed}
                for code, listed in targets.items()
            ]
        )

    async def settings(self, request: Request) -> Response:
        """The settings of a page for users."""
        source, target, _ = self.translations.directions[0]
        pair = {"source": source, "target": target}
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

    def _read_direction(self, given: dict[str, Any]) -> Direction:
        """The direction that the request names."""
        for name in ("source", "target"):
            require(bool(given.get(name)), f"Invalid request: missing {name} parameter")
        source = None if given["source"] == AUTO else given["source"]
        return self.translations.direction(source, given["target"])


def _whole_number(given: dict[str, Any], name: str) -> int:
    """The whole number with a name, in JSON or in a form; 0 without one."""
    value = given.get(name, 0)
    text = str(value)
    is_number = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) < 9
    require(is_number, f"Expected a whole number as {name}, got {shown(value)}.")
    return int(text)
