"""OpenAI's API for chats, with the last message of the user as the text.

https://platform.openai.com/docs/api-reference/chat
"""

import json
import time
import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tf_transformer.run.directions import Direction
from tf_transformer.serving.api import Api
from tf_transformer.serving.requests import require, shown

SCHEME = "Bearer "
TYPES = {401: "authentication_error", 404: "not_found_error", 503: "overloaded_error"}


class OpenAi(Api):
    """OpenAI's API for chats, under /v1. System messages and settings of the search are ignored."""

    name = "openai"

    def routes(self) -> list[BaseRoute]:
        """The addresses and their handlers."""
        return [
            Route("/chat/completions", self.complete, methods=["POST"]),
            Route("/models", self.models),
        ]

    def error(self, message: str, status: int) -> dict[str, Any]:
        """The content of an answer to a request that is refused."""
        kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    async def complete(self, request: Request) -> Response:
        """Answers a chat with the translation of its last message of the user."""
        self._require_key(request)
        given = await self.read(request)
        n = given.get("n")
        require(n in (None, 1), f"This server gives one choice; got {shown(n)} as n.")
        direction = self._direction(given.get("model"))
        text = self.translations.limits.accept_text(text_of(given.get("messages")), "The message")
        (translation,) = await self.translations([text], direction)
        answer = {"role": "assistant", "content": translation.texts[0]}
        end = "stop" if translation.complete else "length"
        head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": self.translations.model.name,
        }
        if given.get("stream"):
            return Response(_events(head, answer, end), media_type="text/event-stream")
        choice = {"index": 0, "message": answer, "logprobs": None, "finish_reason": end}
        return JSONResponse(head | {"object": "chat.completion", "choices": [choice]})

    async def models(self, request: Request) -> Response:
        """The model; or one for each target language, such as mine:de."""
        self._require_key(request)
        model = {"object": "model", "created": 0, "owned_by": "tf_transformer"}
        listed = [{"id": name, **model} for name in self._models()]
        return JSONResponse({"object": "list", "data": listed})

    def _models(self) -> dict[str, Direction]:
        """The first direction into each target language, by the name of its model."""
        name, targets = self.translations.model.name, self.translations.targets
        first = {
            direction.target: direction for direction in reversed(self.translations.directions)
        }
        if len(targets) == 1:
            return {name: first[targets[0]]}
        return {f"{name}:{target}": first[target] for target in targets}

    def _direction(self, model: Any) -> Direction:
        """The direction of the model that a request names. A single one may have any name."""
        models = self._models()
        if len(models) == 1:
            return next(iter(models.values()))
        is_known = isinstance(model, str) and model in models
        listed = ", ".join(models)
        require(is_known, f"There is no model {shown(model)}; this server has {listed}.", 404)
        return models[model]

    def _require_key(self, request: Request) -> None:
        header = request.headers.get("authorization", "")
        self.translations.require_key(header.removeprefix(SCHEME), status=401)


def text_of(messages: Any) -> str:
    """The text of the last message of the user, which may be a list of parts."""
    is_chat = isinstance(messages, list) and all(isinstance(x, dict) for x in messages)
    of_user = [x for x in messages if x.get("role") == "user"] if is_chat else []
    require(bool(of_user), "Expected messages with at least one of the role user.")
    content = of_user[-1].get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [x["text"] for x in parts if isinstance(x, dict) and isinstance(x.get("text"), str)]
    are_texts = len(texts) == len(parts)
    require(are_texts, f"Expected text as the content of a message, got {shown(content)}.")
    return "\n".join(texts)


def _events(head: dict[str, Any], answer: dict[str, Any], end: str) -> str:
    """The answer as a stream of events, in one chunk."""
    head |= {"object": "chat.completion.chunk"}
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": answer, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": end},
    ]
    chunks = [json.dumps(head | {"choices": [choice]}) for choice in choices]
    return "".join(f"data: {data}\n\n" for data in [*chunks, "[DONE]"])
