"""JSON: the strings at any depth, but no keys."""

import json
import re

from tf_transformer.documents.document import Document, Options, TextDocument
from tf_transformer.errors import InputError

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')


def read_json(content: str, options: Options) -> Document:
    """Reads the strings of a JSON document. Keys, numbers and layout stay."""
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON: {error}. Correct it.") from error
    is_ascii = "\\u" in content and content.isascii()
    document = TextDocument(lambda text: json.dumps(text, ensure_ascii=is_ascii)[1:-1])
    end = 0
    for match in _STRING.finditer(content):
        if not match[2]:
            document.stop(content[end : match.start(1)])
            document.add(json.loads(f'"{match[1]}"'), match[1])
            end = match.end(1)
    document.stop(content[end:])
    return document.document()
