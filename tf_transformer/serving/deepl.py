"""DeepL's API: https://developers.deepl.com/api-reference/translate."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tf_transformer.run.directions import Direction
from tf_transformer.serving.api import Api
from tf_transformer.serving.formats import HTML_RULES, XML_RULES, Format, lines_of, markup
from tf_transformer.serving.glossaries import MOST, Glossary, read_entries
from tf_transformer.serving.languages import name_of
from tf_transformer.serving.requests import require, shown
from tf_transformer.serving.translations import Translations

SCHEME = "DeepL-Auth-Key "
REFUSED = ("glossary_ids", "translation_memory_id", "style_id", "custom_instructions")
FORMALITIES = ("default", "prefer_more", "prefer_less")  # that a model without formality may have


class DeepL(Api):
    """DeepL's API under /v2, and its glossaries under /v3, too."""

    name = "deepl"

    def __init__(self, translations: Translations):
        super().__init__(translations)
        self._glossaries: dict[str, Glossary] = {}  # by id

    def routes(self) -> list[BaseRoute]:
        """The addresses and their handlers."""
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/usage", self.usage),
            Route("/glossary-language-pairs", self.glossary_pairs),
            Route("/glossaries", self.list_glossaries),
            Route("/glossaries", self.create_glossary, methods=["POST"]),
            Route("/glossaries/{id}", self.glossary, methods=["GET", "DELETE"]),
            Route("/glossaries/{id}/entries", self.entries),
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
        direction = self._direction(given)
        texts = given.get("text")
        texts = [texts] if isinstance(texts, str) else texts
        texts = self.translations.limits.accept_texts(texts, "text")
        terms = ""
        if named := given.get("glossary_id"):
            glossary = self._glossary(named)
            message = f"The glossary is for {' to '.join(glossary.direction[:2])}."
            require(glossary.direction == direction, message)
            terms = glossary.tsv(texts)
        rows = await self.translations(texts, direction, _format_of(given), terms=terms)
        source = direction.source.upper()
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
        """The source languages, or with the type `target` the target languages."""
        given = await self._read_with_key(request)
        kind = given.get("type", "source")
        require(
            kind in ("source", "target"), f"Expected source or target as type, got {shown(kind)}."
        )
        codes = self.translations.sources if kind == "source" else self.translations.targets
        formality = {"supports_formality": False} if kind == "target" else {}
        return JSONResponse(
            [{"language": code.upper(), "name": name_of(code), **formality} for code in codes]
        )

    async def usage(self, request: Request) -> Response:
        """The characters of texts since the start. There is no quota: the limit is large."""
        await self._read_with_key(request)
        count = self.translations.character_count
        return JSONResponse({"character_count": count, "character_limit": 10**12})

    async def glossary_pairs(self, request: Request) -> Response:
        """The language pairs, if the model takes terms."""
        await self._read_with_key(request)
        directions = self.translations.directions if self.translations.takes_terms else []
        return JSONResponse({"supported_languages": list(map(_pair, directions))})

    async def list_glossaries(self, request: Request) -> Response:
        """All glossaries."""
        await self._read_with_key(request)
        listed = list(map(_info, self._glossaries.values()))
        return JSONResponse({"glossaries": listed})

    async def create_glossary(self, request: Request) -> Response:
        """Makes a glossary of `entries`; in version 3 of one dictionary with them."""
        given = await self._read_with_key(request)
        require(self.translations.takes_terms, "This translator takes no glossaries.")
        message = f"This server has {MOST:,} glossaries. Delete one."
        require(len(self._glossaries) < MOST, message, status=429)
        name, dictionaries = given.get("name"), given.get("dictionaries", [given])
        require(isinstance(name, str) and bool(name), "A glossary needs a name.")
        is_one = isinstance(dictionaries, list) and [*map(type, dictionaries)] == [dict]
        require(is_one, "Expected one dictionary.")
        direction = self._direction(dictionaries[0])
        called = self.translations.limits.accept_text(str(name), "The name")
        glossary = Glossary(called, direction, read_entries(dictionaries[0]))
        self._glossaries[glossary.id] = glossary
        return JSONResponse(_info(glossary), 201)

    async def glossary(self, request: Request) -> Response:
        """A glossary without its entries; or deletes it."""
        await self._read_with_key(request)
        glossary = self._glossary(request.path_params["id"])
        if request.method == "DELETE":
            del self._glossaries[glossary.id]
            return Response(status_code=204)
        return JSONResponse(_info(glossary))

    async def entries(self, request: Request) -> Response:
        """The entries of a glossary as TSV; in version 3 inside of JSON."""
        await self._read_with_key(request)
        glossary = self._glossary(request.path_params["id"])
        entries = glossary.tsv()
        if request.scope["root_path"] == "/v2":
            return Response(entries, media_type="text/tab-separated-values")
        dictionary = {**_pair(glossary.direction), "entries": entries, "entries_format": "tsv"}
        return JSONResponse({"dictionaries": [dictionary]})

    async def _read_with_key(self, request: Request) -> dict[str, Any]:
        """The values of a request with a key, in a header or in a value."""
        given = await self.read(request)
        header = request.headers.get("authorization", "")
        key = header.removeprefix(SCHEME) if header.startswith(SCHEME) else given.get("auth_key")
        self.translations.require_key(key, status=403)
        return given

    def _glossary(self, name: Any) -> Glossary:
        glossary = self._glossaries.get(name) if isinstance(name, str) else None
        if glossary is None:
            raise HTTPException(404, f"There is no glossary {shown(name)}.")
        return glossary

    def _direction(self, given: dict[str, Any]) -> Direction:
        """The direction that a request names. The source may be missing."""
        source, target = given.get("source_lang") or None, given.get("target_lang") or ""
        return self.translations.direction(source, target, ("source_lang", "target_lang"))


def _pair(direction: Direction) -> dict[str, str]:
    return {"source_lang": direction.source.lower(), "target_lang": direction.target.lower()}


def _info(glossary: Glossary) -> dict[str, Any]:
    """What clients of both versions read."""
    head = {"glossary_id": glossary.id, "name": glossary.name, "ready": True}
    dictionary = {**_pair(glossary.direction), "entry_count": len(glossary.entries)}
    return head | dictionary | {"creation_time": glossary.created, "dictionaries": [dictionary]}


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
