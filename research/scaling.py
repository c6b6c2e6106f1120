"""Costs as functions of sizes: formulas fitted to measurements, and what the paper's models need.

    python -m research.scaling --output research/results/scaling.json

A formula is a sum of terms, each a coefficient times a product of sizes. Least squares of relative
errors gives the coefficients; none is negative. The error of a formula is the median of relative
errors of predictions, each for a measurement that the fit did not have.

- update: seconds of an update, by floating-point operations, parameters, and a constant.
- decoding: seconds of a call, by steps L, rows of a step B·W, vocabulary V, and positions attended
  to by each row, S + W·L / 2.
- reduction: seconds until the gradients of all replicas are summed, by replicas R and bytes. The
  replicas are logical devices of this processor: copies in its memory, not a network.
- corpus: seconds until all pairs are tokenised and stored, by pairs, of
  benchmarks/results/data_memory.json.

The table of GPUs is computed, not measured: the operations of the paper's training runs over the
peak of a GPU and the share of the peak that the paper's own GPUs reached.
"""

import pathlib
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu.__main__ import operations
from benchmarks.harness import results
from benchmarks.harness.options import chosen
from benchmarks.harness.processes import call
from benchmarks.harness.shapes import SHAPES
from benchmarks.harness.tables import of_rows
from benchmarks.train.workload import Cell
from tf_transformer.commands import command_line

Sizes = Mapping[str, float]
Term = Callable[[Sizes], float]


class Formula(NamedTuple):
    """A sum of terms of sizes."""

    text: str  # a, b, c, ... are the coefficients
    terms: Sequence[Term]


FORMULAS = {
    "update": Formula(
        "a + b · parameters + c · operations",
        (lambda s: 1.0, lambda s: s["parameters"], lambda s: s["operations"]),
    ),
    "decoding": Formula(
        "L · (a + B·W · (b + c · V + d · (S + W·L / 2)))",
        (
            lambda s: s["steps"],
            lambda s: s["steps"] * _rows(s),
            lambda s: s["steps"] * _rows(s) * s["vocabulary"],
            lambda s: s["steps"] * _rows(s) * (s["source"] + s["beam"] * s["steps"] / 2),
        ),
    ),
    "reduction": Formula(
        "a · R + b · (R - 1) · bytes",
        (lambda s: s["replicas"], lambda s: (s["replicas"] - 1) * s["bytes"]),
    ),
    "corpus": Formula("a · pairs", (lambda s: s["pairs"],)),
}
# Peaks in 10¹² operations per second, of products of dense matrices in bfloat16 or float16 with
# tensor cores; the P100's is that of float32 in the paper's footnote 5.
GPUS = {"P100": 9.5, "V100": 125, "T4": 65, "L4": 121, "A100": 312, "H100": 989, "RTX 4090": 165}
# Section 5: 25,000 target tokens per batch, updates, and seconds per update on 8 P100. Sentences of
# the corpus have about 30 tokens.
BATCH = Cell(sentences=833, tokens=30)
PAPER = {"base": (100_000, 0.4), "big": (300_000, 1.0)}


def _rows(sizes: Sizes) -> float:
    return sizes["batch"] * sizes["beam"]


def main(parts: str = ",".join(FORMULAS), output: str = "") -> None:
    """Prints the fitted formulas, their errors, and hours of training on GPUs.

    Args:
        parts: formulas to fit.
        output: result file to write, for example research/results/scaling.json.
    """
    rows = []
    for part in chosen(parts, FORMULAS):
        measured = MEASURED[part]()
        print(of_rows(measured, left=0), flush=True)
        sizes, seconds = measured, [point["seconds"] for point in measured]
        rows.append(
            {
                "part": part,
                "formula": FORMULAS[part].text,
                "coefficients": {
                    name: float(f"{coefficient:.3g}")
                    for name, coefficient in zip("abcd", fit(part, sizes, seconds), strict=False)
                },
                "error": round(left_out_error(part, sizes, seconds), 3),
                "measurements": measured,
            }
        )
    gpus = trainings()
    table = [{**row, "measurements": len(row["measurements"])} for row in rows]
    print(f"{of_rows(table, left=2)}\n\n{of_rows(gpus, left=2)}")
    results.save(output, rows, ("tensorflow", "keras"), trainings=gpus)


def fit(part: str, sizes: Sequence[Sizes], seconds: Sequence[float]) -> np.ndarray:
    """The coefficients with the least squares of relative errors; 0 instead of negative ones."""
    terms = np.array([[term(point) for term in FORMULAS[part].terms] for point in sizes])
    relative = terms / np.array(seconds)[:, None]
    used = list(range(terms.shape[1]))
    while True:
        scale = np.abs(relative[:, used]).max(axis=0)
        found, *_ = np.linalg.lstsq(relative[:, used] / scale, np.ones(len(seconds)), rcond=None)
        if (found >= 0).all() or len(used) == 1:
            coefficients = np.zeros(terms.shape[1])
            coefficients[used] = found / scale
            return coefficients
        used.pop(int(found.argmin()))


def predicted(part: str, coefficients: Iterable[float], sizes: Sizes) -> float:
    """Seconds by a formula."""
    return sum(c * term(sizes) for c, term in zip(coefficients, FORMULAS[part].terms, strict=True))


def left_out_error(part: str, sizes: Sequence[Sizes], seconds: Sequence[float]) -> float:
    """The median relative error of predictions for measurements that the fit had not."""
    errors = []
    for i, one in enumerate(sizes):
        others = [j for j in range(len(sizes)) if j != i]
        coefficients = fit(part, [sizes[j] for j in others], [seconds[j] for j in others])
        errors.append(abs(predicted(part, coefficients, one) / seconds[i] - 1))
    return statistics.median(errors)


def trainings() -> list[dict[str, Any]]:
    """The paper's training runs: operations, share of the peak of 8 P100, and days on one GPU."""
    found = []
    for shape, (updates, seconds) in PAPER.items():
        work = operations(SHAPES[shape]._replace(vocabulary_size=37_000), BATCH)
        share = work / (seconds * 8 * GPUS["P100"] * 1e12)
        days = {
            gpu: round(updates * work / (share * peak * 1e12) / 86_400, 2)
            for gpu, peak in GPUS.items()
        }
        found.append(
            {"model": shape, "operations": updates * work, "share_of_peak": round(share, 2)} | days
        )
    return found


def _updates() -> list[dict[str, Any]]:
    sizes = {"tiny": ((16, 24), (64, 24), (64, 48), (256, 24)), "base": ((4, 32), (16, 32))}
    return [
        call("research.scaling:update", shape=shape, sentences=sentences, tokens=tokens)
        for shape, cells in sizes.items()
        for sentences, tokens in cells
    ]


def update(shape: str, sentences: int, tokens: int) -> dict[str, Any]:
    """Seconds of an update; for a process of its own."""
    from benchmarks.harness.tasks import Setting
    from benchmarks.train import updater

    cell, folder = Cell(sentences, tokens), pathlib.Path()
    task = updater.task(Setting(SHAPES[shape], folder, folder), cell, jit_compile=False)
    return {
        "shape": shape,
        **{"sentences": sentences, "tokens": tokens},
        **{"parameters": task.parameters, "operations": operations(SHAPES[shape], cell)},
        "seconds": _median_seconds(task.run) / task.steps,
    }


def _decodings() -> list[dict[str, Any]]:
    middle = {"batch": 16, "beam": 4, "steps": 24, "source": 24, "vocabulary": 8000}
    others = {
        "batch": (1, 4, 64),
        "beam": (1, 2, 8),
        "steps": (12, 48, 96),
        "source": (8, 96),
        "vocabulary": (2000, 32_000),
    }
    grid = [middle] + [middle | {name: v} for name, values in others.items() for v in values]
    return [call("research.scaling:decoding", **sizes) for sizes in grid]


def decoding(batch: int, beam: int, steps: int, source: int, vocabulary: int) -> dict[str, Any]:
    """Seconds of a search by a model of two layers; for a process of its own."""
    from benchmarks.kernels.search_probes import loop_of, make_model
    from tf_transformer.config import DecodeConfig
    from tf_transformer.inference.search import Search
    from tf_transformer.text.special_ids import EOS_ID

    ids = np.random.default_rng(1).integers(4, vocabulary, (batch, source), np.int32)
    ids[:, -1] = EOS_ID
    config = DecodeConfig(beam_size=beam, min_length=steps - 1, max_length=steps)
    loop = loop_of(Search(make_model(vocabulary_size=vocabulary), config), ids, compiled=False)
    sizes = {"batch": batch, "beam": beam, "steps": steps, "source": source}
    return sizes | {"vocabulary": vocabulary, "seconds": _median_seconds(lambda: loop(1))}


def _reductions() -> list[dict[str, Any]]:
    return [
        call("research.scaling:reduction", replicas=replicas, bytes=megabytes * 10**6)
        for replicas in (2, 4, 8)
        for megabytes in (2, 9, 60, 240)
    ]


def reduction(replicas: int, bytes: int) -> dict[str, Any]:
    """Seconds of the sum of a tensor over the replicas of a strategy; for a process of its own."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    devices = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(cpu, devices)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{number}" for number in range(replicas)])
    with strategy.scope():
        gradients = tf.Variable(tf.ones(bytes // 4))

    def step() -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        total = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients.read_value())
        return total[0]  # the sum is computed, and its copies do not leave the function

    run = tf.function(lambda: strategy.run(step))
    if float(strategy.experimental_local_results(run())[0]) != replicas:
        raise RuntimeError("expected the sum of the ones of all replicas.")
    seconds = _median_seconds(lambda: strategy.experimental_local_results(run())[0].numpy())
    return {"replicas": replicas, "bytes": bytes, "seconds": seconds}


def _corpora() -> list[dict[str, Any]]:
    return [
        {"pairs": row["pairs"], "seconds": row["tokenisation_seconds"]}
        for row in results.read("data_memory")["measurements"]
    ]


MEASURED: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
    "update": _updates,
    "decoding": _decodings,
    "reduction": _reductions,
    "corpus": _corpora,
}


def _median_seconds(run: Callable[[], Any], repeats: int = 7) -> float:
    """Of several calls, after two that are not timed."""
    seconds = []
    for _ in range(2 + repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


if __name__ == "__main__":
    command_line.run(main)
