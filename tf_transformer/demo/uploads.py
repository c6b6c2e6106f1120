"""Documents that the page sends, and the progress of their translation."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tf_transformer.documents import Document, Options, read_content
from tf_transformer.documents.document import texts_of, with_translations
from tf_transformer.errors import InputError
from tf_transformer.files.writing import one_line
from tf_transformer.inference.predictor import NBest
from tf_transformer.serving.requests import Limits, require, shown

UPLOAD = 2**24  # bytes of a document
UNPACKED = 2**26  # bytes of its parts, if it is compressed
UPLOADS = Limits(request_bytes=2**25)  # a document in base64 with its options
CALL = 32  # texts that are translated at once; other requests come between


async def read_upload(body: dict[str, Any], languages: Sequence[str]) -> Document:
    """Takes a document out of a body: its `name`, and its `content` in base64."""
    name, content = body.pop("name", None), body.pop("content", None)
    is_name = isinstance(name, str) and 0 < len(name) < 1000
    require(is_name, f"Expected the name of a document as name, got {shown(name)}.")
    try:
        document = base64.b64decode(content or "", validate=True)
    except (TypeError, ValueError) as error:
        raise HTTPException(400, "Expected a document in base64 as content.") from error
    message = f"The file has {len(document):,} bytes; at most {UPLOAD:,} are translated."
    require(len(document) <= UPLOAD, message, status=413)
    source, target = languages or ("", "")
    options = Options(source, target, unpacked_bytes=UNPACKED)
    try:
        return await run_in_threadpool(read_content, document, name, options)
    except InputError as error:
        raise HTTPException(400, str(error)) from error


async def progress_of(
    document: Document, n_best: Callable[[Sequence[str]], Awaitable[NBest]]
) -> AsyncIterator[str]:
    """Translates a document. Gives lines of JSON.

    Each line but the last tells how many of the texts are translated: {"done": 32, "texts": 70}.
    The last one is {"error": "one sentence"}, or has the `content` in base64, the number of
    segments that `lost` a tag, and how many of the texts have each of the `notices`.
    """
    texts = await run_in_threadpool(texts_of, document)
    translations, notices = list[str](), Counter[str]()
    while len(translations) < len(texts):
        yield _line(done=len(translations), texts=len(texts))
        try:
            rows = await n_best(texts[len(translations) :][:CALL])
        except HTTPException as error:
            if error.status_code != 503:
                yield _line(error=error.detail)
                return
            await asyncio.sleep(1)  # the queue is full
            continue
        translations += [one_line(row[0].text) for row in rows]
        notices.update(notice for row in rows for notice in row[0].notices)
    content, lost = await run_in_threadpool(with_translations, document, texts, translations)
    encoded = base64.b64encode(content).decode()
    yield _line(content=encoded, texts=len(texts), lost=lost, notices=notices)


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"
