"""A self-contained HTML page about attention."""

import html
import importlib.resources
import json
from collections.abc import Sequence

from tf_transformer.inference.attention_record import AttentionRecord

_RECORDS = "<!-- records -->"
_DIGITS = 3  # decimals of weights
_NAME = 60  # characters of a sentence in its name


def attention_page(records: Sequence[AttentionRecord]) -> str:
    """The page for records; its template is `attention_page.html`.

    Each record is a separate JSON block. The page reads the block when a user selects its sentence.
    """
    template = importlib.resources.files(__package__).joinpath("attention_page.html")
    blocks = "\n".join(map(_block, records))
    return template.read_text("utf-8").replace(_RECORDS, blocks)


def _block(record: AttentionRecord) -> str:
    """A JSON block of HTML. It contains no `<`, so no text in it ends the block."""
    text = json.dumps(record.to_json(_DIGITS), ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace("0.0,", "0,").replace("0.0]", "0]")
    name = record.text[:_NAME] + "…" * (len(record.text) > _NAME)
    attributes = f'type="application/json" class="record" data-name="{html.escape(name)}"'
    return f"<script {attributes}>{text}</script>"
