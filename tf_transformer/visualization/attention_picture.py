"""Pictures of attention, with a heat map for each layer and head."""

import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.inference.attention_record import AttentionRecord

_NAMES = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "decoder to encoder",
}
_CELL = 0.16  # inches, size of a token
_TITLE = 1.9  # inches, width of a map's title


class _Map(NamedTuple):
    """The weights of one head."""

    title: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray  # (T, S)


def attention_picture(record: AttentionRecord, suffix: str) -> bytes:
    """The heat maps of all layers and heads between words, with a row for each layer.

    Args:
        record: the record of a sentence.
        suffix: .png or .svg.

    Returns:
        the content of the image file.
    """
    return _draw(_layers(record), suffix)


def last_layer_picture(record: AttentionRecord, suffix: str) -> bytes:
    """The heat maps of the last layer of the last kind of attention, arranged as a square.

    Args:
        record: the record of a sentence, with attention.
        suffix: .png or .svg.

    Returns:
        the content of the image file.
    """
    heads = _layers(record)[-1]
    columns = math.ceil(math.sqrt(len(heads)))
    return _draw([heads[n : n + columns] for n in range(0, len(heads), columns)], suffix)


def _layers(record: AttentionRecord) -> list[list[_Map]]:
    """For each layer of each kind of attention, a map for each head."""
    return [
        [
            _Map(
                f"{_NAMES[each.kind]} layer {layer}, head {head}",
                *(each.queries.words, each.keys.words, weights),
            )
            for head, weights in enumerate(heads, 1)
        ]
        for each in record.maps
        for layer, heads in enumerate(each.by_words(), 1)
    ]


def _draw(rows: Sequence[Sequence[_Map]], suffix: str) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    maps = [each for row in rows for each in row]
    columns = max(map(len, rows))
    label = 0.07 * max(len(word) for each in maps for word in each.queries + each.keys)
    width = max(_TITLE, _CELL * max(len(each.keys) for each in maps))
    heights = [len(row[0].queries) * _CELL for row in rows]
    file = io.BytesIO()
    # Words with $ are not formulas, and SVG files keep text as text.
    with rc_context({"text.parse_math": False, "svg.fonttype": "none"}):
        figure = Figure(
            (label + columns * (width + 0.2), sum(heights) + len(rows) * (label + 0.4)),
            layout="constrained",
        )
        axes = figure.subplots(
            len(rows), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        for of_row, row in zip(axes, rows, strict=True):
            for axis in of_row[len(row) :]:
                axis.set_axis_off()
            for number, (axis, each) in enumerate(zip(of_row, row, strict=False)):
                _draw_map(axis, each, with_queries=number == 0)
        figure.savefig(file, format=suffix.removeprefix("."), dpi=100)
    return file.getvalue()


def _draw_map(axis: Any, each: _Map, with_queries: bool) -> None:
    axis.imshow(each.weights, cmap="Blues", vmin=0, vmax=1)
    axis.set_title(each.title, fontsize=8)
    axis.set_xticks(range(len(each.keys)), each.keys, rotation=90, fontsize=7)
    labels = each.queries if with_queries else [""] * len(each.queries)
    axis.set_yticks(range(len(each.queries)), labels, fontsize=7)
    axis.tick_params(length=0)
