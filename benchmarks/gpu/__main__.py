"""Compares the speed of training on a GPU with Flax and torch.

    python -m benchmarks.gpu --output benchmarks/results/gpu.json

Our Transformer runs on Keras' JAX backend. Without a GPU, the same programs run on the CPU; give
small sizes: `--shapes tiny --sentences 4 --tokens 8 --dtype float32`.
"""

import os
import statistics
import sys
from typing import Any, Literal

from benchmarks.gpu.systems import OURS, SYSTEMS
from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import Process, ProcessError
from benchmarks.harness.shapes import SHAPES, Shape
from benchmarks.harness.systems import not_installed
from benchmarks.harness.tables import of_rows
from benchmarks.train.workload import BATCHES, Cell, check_losses, check_parameters
from tf_transformer.commands import command_line

PACKAGES = ("tf_transformer", "keras", "jax", "flax", "optax", "torch", "numpy")
_WARM_UP_RUNS = 2


def main(
    shapes: str = "base,big",
    systems: str = ",".join(SYSTEMS),
    sentences: int = 256,
    tokens: int = 64,
    dtype: Literal["bfloat16", "float32"] = "bfloat16",
    updates: int = 20,
    rounds: int = 3,
    output: str = "",
) -> None:
    """Prints target tokens per second, share of the fastest product, and memory of each system.

    Args:
        shapes: sizes of the model: base, big, tiny.
        systems: systems to measure; a system without its packages is skipped and named.
        sentences: sentences in a batch.
        tokens: tokens of a source, and tokens of a target.
        dtype: dtype of the computation; weights are float32.
        updates: timed updates per round, rounded up to whole runs over the four batches.
        rounds: number of measurements of each system, in a fresh process each time.
        output: result file to write, like benchmarks/results/gpu.json.
    """
    at_least_one(sentences=sentences, tokens=tokens, updates=updates, rounds=rounds)
    cell, runs = Cell(sentences, tokens, dtype), -(-updates // BATCHES)
    rows: list[dict[str, Any]] = []
    for shape in chosen(shapes, SHAPES):
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(rounds):
            for name in chosen(systems, SYSTEMS):
                try:
                    found.setdefault(name, []).append(measured(shape, name, cell, runs))
                except (ProcessError, RuntimeError) as error:
                    print(f"{shape} {name} failed: {error}", file=sys.stderr)
        rows += [row(shape, name, cell, rounds) for name, rounds in found.items() if rounds]
    if not rows:
        sys.exit("no system could be measured.")
    rows = compared(rows, cell)
    print(of_rows(rows, left=2))
    results.save(output, rows, PACKAGES)


def measured(shape: str, name: str, cell: Cell, runs: int) -> dict[str, Any]:
    """The numbers of one process.

    Raises:
        ProcessError: when it ends with an error.
        RuntimeError: when packages are missing, or the system does not do the work.
    """
    system = SYSTEMS[name]
    if lacks := not_installed(system.packages):
        raise RuntimeError(f"needs {', '.join(lacks)}.")
    devices = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0")}
    with Process({**devices, **system.environment}) as process:
        work = {"systems": "benchmarks.gpu.systems", "system": name, "shape": shape, "folder": ""}
        fields = process.call(
            "benchmarks.harness.tasks:measure",
            **(work | {"cell": cell, "warm_up": _WARM_UP_RUNS, "repeats": runs}),
        )
        facts = process.call("benchmarks.gpu.device:facts", dtype=cell.dtype)
    check_parameters(fields["parameters"], SHAPES[shape])
    check_losses(fields["values"], SHAPES[shape].vocabulary_size)
    seconds = [usage[0] for usage in fields["usages"]]
    return {"tokens_per_second": fields["tokens"] / statistics.median(seconds), **facts}


def row(shape: str, name: str, cell: Cell, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table: medians over the rounds."""
    fields = ("tokens_per_second", "peak_mb", "product_tflops")
    medians = {field: statistics.median(numbers[field] for numbers in rounds) for field in fields}
    where = {"shape": shape, "system": name, **cell._asdict(), "device": rounds[0]["device"]}
    return where | {field: round(value, 2) for field, value in medians.items()}


def compared(rows: list[dict[str, Any]], cell: Cell) -> list[dict[str, Any]]:
    """The rows with two further numbers.

    `utilization` is the rate of an update's operations, as a share of the fastest rate of a matrix
    product in all systems. `ratio_to_fastest_other` compares the systems of a shape.
    """
    fastest_product = max(row["product_tflops"] for row in rows)
    result = []
    for row in rows:
        speed = row["tokens_per_second"]
        per_token = operations(SHAPES[row["shape"]], cell) / (cell.sentences * cell.tokens)
        others = [
            other["tokens_per_second"]
            for other in rows
            if other["shape"] == row["shape"] and other["system"] not in OURS
        ]
        numbers = {
            "utilization": round(speed * per_token / 1e12 / fastest_product, 3),
            "ratio_to_fastest_other": round(speed / max(others), 2) if others else None,
        }
        result.append(row | numbers)
    return result


def operations(shape: Shape, cell: Cell) -> float:
    """Floating-point operations of the products in an update.

    A multiplication and its addition are two operations. The backward pass has twice the operations
    of the forward pass. Each of T source tokens and T target tokens is multiplied with all weights
    of its stack. The keys of cross-attention come from the source.
    """
    size, hidden, length = shape.d_model, shape.d_ff, cell.tokens
    weights = shape.num_layers * (12 * size**2 + 4 * size * hidden)  # of an encoder and decoder
    scores = shape.num_layers * 3 * 2 * length * size  # queries · keys, and weights · values
    per_token = weights + scores + shape.vocabulary_size * size
    return 3 * 2 * per_token * cell.sentences * length


if __name__ == "__main__":
    command_line.run(main)
