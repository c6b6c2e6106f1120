"""The content of requests, and errors for what is wrong with them."""

import json
import math
import urllib.parse
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tf_transformer.errors import InputError
from tf_transformer.serving.batches import Batches, FullError
from tf_transformer.text.normalization import well_formed


@dataclass(frozen=True)
class Limits:
    """What a server takes: bytes and texts of a request, characters of a text."""

    request_bytes: int = 2**18
    texts: int = 128
    characters: int = 2000

    def accept_texts(self, given: Any, name: str) -> list[str]:
        """The list of texts in the value of a request with a name."""
        are_texts = isinstance(given, list) and all(isinstance(text, str) for text in given)
        require(are_texts, f"Expected a list of texts as {name}, got {shown(given)}.")
        most, count = self.texts, len(given)
        require(0 < count <= most, f"Expected 1 to {most} {name} in a request, got {count}.")
        return [
            self.accept_text(text, f"Text {number} of {name}")
            for number, text in enumerate(given, 1)
        ]

    def accept_text(self, text: str, called: str) -> str:
        """A text of a request, which is not too long."""
        longest, length = self.characters, len(text)
        message = f"{called} has {length:,} characters; at most {longest:,} are allowed."
        require(length <= longest, message, status=413)
        return well_formed(text)

    async def read_body(self, request: Request) -> bytes:
        """The body of a request, which is not too long."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            message = f"A request may have at most {self.request_bytes:,} bytes."
            require(len(body) <= self.request_bytes, message, status=413)
        return bytes(body)


def content_type(request: Request) -> str:
    """The type of a request's body, like application/json; "" if none is named."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parse_json(body: bytes) -> dict[str, Any]:
    """The JSON object in the body of a request."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The request is not JSON: {error}.") from error
    require(isinstance(content, dict), f"Expected a JSON object, got {shown(content)}.")
    return content


def parse_form(text: bytes | str) -> dict[str, str | list[str]]:
    """The values of an encoded form or query by name; a list for a name with several values."""
    try:
        text = text.decode("ascii") if isinstance(text, bytes) else text
        lists = urllib.parse.parse_qs(text, keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise HTTPException(400, f"The request is not a form in UTF-8: {error}.") from error
    return {name: values if len(values) > 1 else values[0] for name, values in lists.items()}


async def run(
    batches: Batches, function: Callable[..., Any], items: Sequence[Any], *options: Hashable
) -> Sequence[Any]:
    """The results of a model for the items of a request, or the error that the client gets."""
    try:
        return await batches(function, items, *options)
    except FullError:
        message = "The server is busy. Try again in a second."
        raise HTTPException(503, message, {"Retry-After": "1"}) from None
    except InputError as error:
        raise HTTPException(502, str(error)) from error


def require(is_met: bool, message: str, status: int = 400) -> None:
    """Refuses a request that does not meet a condition."""
    if not is_met:
        raise HTTPException(status, message)


def shown(value: Any) -> str:
    """The first 40 characters of a value as JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "..."
