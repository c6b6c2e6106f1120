"""Pictures of attention: a heat map for each layer and head."""

import io
from collections.abc import Iterator

from tf_transformer.attention_record import AttentionRecord

_NAMES = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "decoder to encoder",
}
_CELL = 0.16  # inches, of a token


def attention_picture(record: AttentionRecord, suffix: str) -> bytes:
    """The heat maps of words of all layers and heads as an image file.

    Args:
        record: a sentence.
        suffix: .png or .svg.
    """
    from matplotlib.figure import Figure

    rows = list(_rows(record))
    columns = max(len(weights) for _, _, _, weights in rows)
    label = 0.07 * max(
        len(word) for each in record.maps for word in each.queries.words + each.keys.words
    )
    widths = max(len(each.keys.words) for each in record.maps) * _CELL
    heights = [len(queries) * _CELL for _, queries, _, _ in rows]
    figure = Figure(
        (label + columns * (widths + 0.2), sum(heights) + len(rows) * (label + 0.4)),
        layout="constrained",
    )
    axes = figure.subplots(
        len(rows), columns, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for of_row, (name, queries, keys, heads) in zip(axes, rows, strict=True):
        for axis in of_row[len(heads) :]:
            axis.set_axis_off()
        for number, (axis, weights) in enumerate(zip(of_row, heads, strict=False), 1):
            axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
            axis.set_title(f"{name}, head {number}", fontsize=8)
            axis.set_xticks(range(len(keys)), keys, rotation=90, fontsize=7)
            axis.set_yticks(
                range(len(queries)), queries if number == 1 else [""] * len(queries), fontsize=7
            )
            axis.tick_params(length=0)
    file = io.BytesIO()
    figure.savefig(file, format=suffix.removeprefix("."), dpi=100)
    return file.getvalue()


def _rows(record: AttentionRecord) -> Iterator[tuple]:
    """A name, words of queries and keys, and weights (H, T, S) for each layer of each kind."""
    for each in record.maps:
        for layer, weights in enumerate(each.by_words(), 1):
            name = f"{_NAMES[each.kind]} layer {layer}"
            yield name, each.queries.words, each.keys.words, weights
