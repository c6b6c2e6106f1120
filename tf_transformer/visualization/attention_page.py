"""A self-contained HTML page that shows attention."""

import html
import importlib.resources
import json
from collections.abc import Sequence

from tf_transformer.inference.attention_record import AttentionRecord

_RECORDS = "<!-- records -->"
_DIGITS = 3  # of weights
_NAME = 60  # characters of a sentence that name it


def attention_page(records: Sequence[AttentionRecord]) -> str:
    """The page for records, one per sentence; `attention_page.html` is its template.

    Each record is a JSON block of its own, and the page reads it when the sentence is chosen.
    """
    template = importlib.resources.files(__package__).joinpath("attention_page.html")
    blocks = "\n".join(map(_block, records))
    return template.read_text("utf-8").replace(_RECORDS, blocks)


def _block(record: AttentionRecord) -> str:
    """A JSON block of HTML. Without `<`, no text in it ends the block."""
    text = json.dumps(record.to_json(_DIGITS), ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("0.0,", "0,").replace("0.0]", "0]")
    name = record.text[:_NAME] + "…" * (len(record.text) > _NAME)
    attributes = f'type="application/json" class="record" data-name="{html.escape(name)}"'
    return f"<script {attributes}>{text}</script>"
