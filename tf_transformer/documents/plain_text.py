"""Plain text, whose lines are translated one by one."""

from tf_transformer.documents.document import Document, Options, written
from tf_transformer.documents.segments import Segment


def read_text(content: str, options: Options) -> Document:
    """Reads a text. The ends of lines, and the space around lines, stay."""
    return Document([Segment([content])], lambda items: written(items[0], str).encode())
