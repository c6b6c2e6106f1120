"""Compares an ONNX folder with the translator from which it was exported."""

import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.config import Quantization
from tf_transformer.decoding import NEG_INF
from tf_transformer.export import check_standalone, to_onnx
from tf_transformer.export.check_int8 import Agreement, require
from tf_transformer.files.writing import one_line
from tf_transformer.inference.search import penalty_of, score_pairs
from tf_transformer.inference.translator import Translator
from tf_transformer.text.special_ids import PAD_ID

# Largest relative difference of scores in float32, where only the order of sums differs.
TOLERANCE = 1e-3
Row = list[tuple[Any, float]]
"""The hypotheses for a sentence, best first: a text or ids, and the score."""


def check(
    folder: pathlib.Path,
    translator: Translator,
    sentences: Sequence[str],
    quantization: Quantization,
) -> str:
    """Runs a folder in fresh processes without TensorFlow, and returns a summary.

    In float32, its translations must be those of the translator: the texts, and the ids of all
    hypotheses. Others may stand in their places if the scores are equal up to rounding. In int8,
    the model must keep its quality; see `check_int8`.

    Raises:
        RuntimeError: when the folder differs more, or does not run.
    """
    graph = translator.graph()
    sources = [row for row in graph.read(tf.constant(sentences)).ids.to_list() if len(row) > 1]
    best = graph.search(_padded(sources))
    ids, scores = best.ids.numpy().tolist(), best.scores.numpy().tolist()
    expected = [_row([_tokens(x) for x in row], s) for row, s in zip(ids, scores, strict=True)]
    lines = [json.dumps(row).encode() + b"\n" for row in sources]
    outputs = check_standalone.run(folder, option="ids", content=b"".join(lines))
    found = [_row(row["ids"], row["scores"]) for row in outputs]
    shown = [
        (one_line(row["translation"]), row["score"])
        for row in check_standalone.run(folder, sentences)
    ]
    check_standalone.require_spans(translator.config, sentences, [text for text, _ in shown])
    left_out = f"left out: {', '.join(to_onnx.LEFT_OUT)}"
    if quantization == "int8":
        changes = _changes(translator, sources, outputs)
        return f"{require(_agreement(expected, found, changes))}; {left_out}"
    different = require_equal(sources, expected, found)
    require_equal(
        sentences,
        [[(one_line(row.text), row.score)] for row in translator(sentences)],
        [[row] for row in shown],
    )
    return f"the ids of {different} of {len(sources)} searches differ from the run; {left_out}"


def require_equal(sources: Sequence[Any], expected: Sequence[Row], found: Sequence[Row]) -> int:
    """Counts the rows that differ; a `RuntimeError` if rounding does not explain a difference."""
    different = 0
    for source, of_run, of_file in zip(sources, expected, found, strict=True):
        different += [text for text, _ in of_run] != [text for text, _ in of_file]
        for (text, score), (other, other_score) in zip(of_run, of_file, strict=False):
            if abs(score - other_score) > TOLERANCE * max(1.0, abs(score)):
                raise RuntimeError(
                    f"the export differs from the run it came from. Source: {source!r:.200}; "
                    f"the run gives {text!r:.200} with score {score:.4f}, and the export gives "
                    f"{other!r:.200} with score {other_score:.4f}."
                )
    if different > check_standalone.MAX_DIFFERENT * len(sources):
        raise RuntimeError(
            f"the export differs from the run it came from: {different} of {len(sources)} results."
        )
    return different


def _agreement(expected: Sequence[Row], found: Sequence[Row], changes: float) -> Agreement:
    """How near the best hypotheses of a folder in int8 are to those of the run, all as ids."""
    lengths = [sum(len(row[0][0]) for row in rows) for rows in (expected, found)]
    kept = [
        of_file[0][0] in [ids for ids, _ in of_run]
        for of_run, of_file in zip(expected, found, strict=True)
    ]
    return Agreement(changes / max(1, lengths[1]), float(np.mean(kept)), lengths[1] / lengths[0])


def _changes(
    translator: Translator, sources: Sequence[list[int]], outputs: Iterable[dict[str, Any]]
) -> float:
    """How much the log-probabilities of a folder's best hypotheses differ from the run's, nats."""
    best = [(row["ids"][0], row["log_probabilities"][0]) for row in outputs]
    targets = _padded([ids for ids, _ in best])
    of_run = score_pairs(translator.model, _padded(sources), targets, penalty_of(translator.config))
    of_file = np.array([total for _, total in best])
    return float(np.abs(of_run.log_probability.numpy() - of_file).sum())


def _padded(rows: Sequence[list[int]]) -> tf.Tensor:
    return tf.ragged.constant(rows, tf.int32).to_tensor(PAD_ID)


def _tokens(ids: Iterable[int]) -> list[int]:
    return [token for token in ids if token != PAD_ID]


def _row(hypotheses: Iterable[Any], scores: Iterable[float]) -> Row:
    return [pair for pair in zip(hypotheses, scores, strict=True) if pair[1] > NEG_INF / 2]
