"""DeepL's API, version 2: https://developers.deepl.com/api-reference/translate."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tf_transformer.serving.api import Api
from tf_transformer.serving.formats import HTML_RULES, XML_RULES, Format, lines_of, markup
from tf_transformer.serving.languages import is_named, name_of
from tf_transformer.serving.requests import require, shown

SCHEME = "DeepL-Auth-Key "
REFUSED = (
    *("glossary_id", "glossary_ids", "translation_memory_id"),
    *("style_id", "custom_instructions"),
)
FORMALITIES = ("default", "prefer_more", "prefer_less")  # that a model without formality may have


class DeepL(Api):
    """DeepL's API for one language pair, without glossaries, under /v2."""

    name = "deepl"

    def routes(self) -> list[BaseRoute]:
        """The addresses and their handlers."""
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/usage", self.usage),
            Route("/glossaries", self.glossaries),
            Route("/glossary-language-pairs", self.glossary_pairs),
        ]

    def error(self, message: str, status: int) -> dict[str, Any]:
        """The content of an answer to a request that is refused."""
        return {"message": message}

    async def translate(self, request: Request) -> Response:
        """Translates `text`, a list of texts; one text in a form with one."""
        given = await self._read_with_key(request)
        for name in REFUSED:
            require(not given.get(name), f"This server does not support {name}.")
        formality = given.get("formality") or "default"
        require(formality in FORMALITIES, f"The formality {shown(formality)} is not supported.")
        self._require_languages(given)
        texts = given.get("text")
        texts = [texts] if isinstance(texts, str) else texts
        texts = self.translations.limits.accept_texts(texts, "text")
        rows = await self.translations(texts, _format_of(given))
        source = self.translations.source.upper()
        shows_count = str(given.get("show_billed_characters")).lower() in ("true", "1")
        return JSONResponse(
            {
                "translations": [
                    {"detected_source_language": source, "text": row.texts[0]}
                    | ({"billed_characters": len(text)} if shows_count else {})
                    for text, row in zip(texts, rows, strict=True)
                ]
            }
        )

    async def languages(self, request: Request) -> Response:
        """The source language, or with the type `target` the target language."""
        given = await self._read_with_key(request)
        kind = given.get("type", "source")
        require(
            kind in ("source", "target"), f"Expected source or target as type, got {shown(kind)}."
        )
        code = self.translations.source if kind == "source" else self.translations.target
        formality = {"supports_formality": False} if kind == "target" else {}
        return JSONResponse([{"language": code.upper(), "name": name_of(code), **formality}])

    async def usage(self, request: Request) -> Response:
        """The characters of texts since the start. There is no quota: the limit is large."""
        await self._read_with_key(request)
        count = self.translations.character_count
        return JSONResponse({"character_count": count, "character_limit": 10**12})

    async def glossaries(self, request: Request) -> Response:
        """No glossaries."""
        await self._read_with_key(request)
        return JSONResponse({"glossaries": []})

    async def glossary_pairs(self, request: Request) -> Response:
        """No language pairs of glossaries."""
        await self._read_with_key(request)
        return JSONResponse({"supported_languages": []})

    async def _read_with_key(self, request: Request) -> dict[str, Any]:
        """The values of a request with a key, in a header or in a value."""
        given = await self.read(request)
        header = request.headers.get("authorization", "")
        key = header.removeprefix(SCHEME) if header.startswith(SCHEME) else given.get("auth_key")
        self.translations.require_key(key, status=403)
        return given

    def _require_languages(self, given: dict[str, Any]) -> None:
        """Refuses another language pair than the model's. The source may be missing."""
        pair = {"source_lang": self.translations.source, "target_lang": self.translations.target}
        for name, code in pair.items():
            value = given.get(name) or (code if name == "source_lang" else "")
            is_known = isinstance(value, str) and is_named(code, value)
            require(is_known, f"Value for '{name}' not supported; this model has {code.upper()}.")


def _format_of(given: dict[str, Any]) -> Format:
    """The format of a request's texts: plain text, HTML, or XML, whose elements divide nothing."""
    kind = given.get("tag_handling") or ""
    require(kind in ("", "html", "xml"), f"The tag_handling {shown(kind)} is not supported.")
    if not kind:
        return lines_of
    names = ("splitting_tags", "non_splitting_tags", "ignore_tags")
    splitting, joining, ignored = (_names(given, name) for name in names)
    rules = HTML_RULES if kind == "html" else XML_RULES
    blocks = (rules.blocks | splitting) - joining
    return markup(rules._replace(blocks=blocks, kept=rules.kept | ignored))


def _names(given: dict[str, Any], name: str) -> set[str]:
    """The names of elements in a value: a list, or a text with commas."""
    value = given.get(name) or []
    names = value.split(",") if isinstance(value, str) else value
    are_names = isinstance(names, list) and all(isinstance(x, str) for x in names)
    require(are_names, f"Expected a list of tags as {name}, got {shown(value)}.")
    return {x.strip().lower() for x in names}
