"""Pictures of attention, with a heat map for each layer and head."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.inference.attention_record import AttentionRecord
from tf_transformer.visualization.charts import image_of

_NAMES = {"encoder": "encoder", "decoder": "decoder", "cross": "decoder to encoder"}
_CELL = 0.16  # inches, size of a token
_TITLE = 1.9  # inches, width of a map's title


class _Map(NamedTuple):
    """The weights of one head."""

    title: str
    queries: list[str]
    keys: list[str]
    weights: np.ndarray  # (T, S)


def attention_picture(record: AttentionRecord, suffix: str) -> bytes:
    """The content of an image file, .png or .svg: maps of all heads, with a row for each layer."""
    return _draw(_layers(record), suffix)


def last_layer_picture(record: AttentionRecord, suffix: str) -> bytes:
    """`attention_picture` of the last layer of the last kind of attention, as a square."""
    heads = _layers(record)[-1]
    columns = math.ceil(math.sqrt(len(heads)))
    return _draw([heads[n : n + columns] for n in range(0, len(heads), columns)], suffix)


def _layers(record: AttentionRecord) -> list[list[_Map]]:
    """For each layer of each kind of attention, a map for each head."""
    layers = []
    for kind in record.maps:
        words = kind.queries.words, kind.keys.words
        for layer, heads in enumerate(kind.by_words(), 1):
            name = f"{_NAMES[kind.kind]} layer {layer}, head"
            layers.append([_Map(f"{name} {n}", *words, w) for n, w in enumerate(heads, 1)])
    return layers


def _draw(rows: Sequence[Sequence[_Map]], suffix: str) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    maps = [one for row in rows for one in row]
    columns = max(map(len, rows))
    label = 0.07 * max(len(word) for one in maps for word in one.queries + one.keys)
    width = max(_TITLE, _CELL * max(len(one.keys) for one in maps))
    heights = [len(row[0].queries) * _CELL for row in rows]
    with rc_context({"text.parse_math": False}):  # words with $ are not formulas
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
            for number, (axis, one) in enumerate(zip(of_row, row, strict=False)):
                axis.imshow(one.weights, cmap="Blues", vmin=0, vmax=1)
                axis.set_title(one.title, fontsize=8)
                axis.set_xticks(range(len(one.keys)), one.keys, rotation=90, fontsize=7)
                labels = one.queries if number == 0 else [""] * len(one.queries)
                axis.set_yticks(range(len(one.queries)), labels, fontsize=7)
                axis.tick_params(length=0)
        return image_of(figure, suffix)
