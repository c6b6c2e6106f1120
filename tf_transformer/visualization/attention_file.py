"""Writes attention to a file; its suffix selects a page, a picture or JSON."""

import importlib.util
import pathlib
from collections.abc import Sequence

from tf_transformer.errors import InputError
from tf_transformer.files.outputs import require_free, write_output
from tf_transformer.inference.attention_record import AttentionRecord, write_json
from tf_transformer.visualization.attention_page import attention_page
from tf_transformer.visualization.attention_picture import attention_picture

MOST = {".html": 100, ".json": 1000, ".png": 1, ".svg": 1}  # most sentences in a file, by suffix


class AttentionFile:
    """Collects the records of the first sentences, and writes them to one file.

    The suffix of the path selects the content. .html: a page. .png or .svg: a picture of the first
    sentence, which needs matplotlib. .json: the numbers.
    """

    def __init__(self, path: str, overwrite: bool = False):
        self._path = pathlib.Path(path)
        self._overwrite = overwrite
        self._suffix = self._path.suffix.lower()
        self._records: list[AttentionRecord] = []
        self._seen = 0
        if self._suffix not in MOST:
            raise InputError(
                f"expected a file that ends in {', '.join(MOST)} for attention, got {path}."
            )
        require_free([path], overwrite=overwrite)
        if MOST[self._suffix] == 1 and importlib.util.find_spec("matplotlib") is None:
            raise InputError(
                f"a picture ({path}) needs matplotlib: pip install 'tf_transformer[plots]'. "
                "A page (.html) does not need it."
            )

    def room(self) -> int:
        """The number of sentences for which the file has room."""
        return MOST[self._suffix] - len(self._records)

    def add(self, records: Sequence[AttentionRecord], sentences: int) -> None:
        """Adds the records of the first sentences of a batch, which has a number of sentences."""
        self._records += records
        self._seen += sentences

    def write(self) -> str:
        """Writes the file; returns a notice if it lacks sentences or is not written, else ""."""
        if not self._records:
            return f"{self._path} is not written: there is no line.\n"
        content: str | bytes
        if self._suffix == ".html":
            content = attention_page(self._records)
        elif self._suffix == ".json":
            content = write_json(self._records)
        else:
            content = attention_picture(self._records[0], self._suffix)
        write_output(self._path, content, self._overwrite)
        if self._seen == len(self._records):
            return ""
        return (
            f"{self._path} has the attention of the first {len(self._records):,} of "
            f"{self._seen:,} lines.\n"
        )
