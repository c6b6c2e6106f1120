r"""Times the two forms of each kernel, and both sides of each threshold, on this machine.

    python -m benchmarks.kernels --parts pairs,kernels \
        --output benchmarks/results/kernels_avx512.json

The thresholds of `tf_transformer.machine.thresholds` were measured on one machine.
`chosen_over_fastest` shows the cost of the code's choice on this machine: 1.00 is the best choice,
and 1.10 takes a tenth longer. For the kernels of an older processor, set ONEDNN_MAX_CPU_ISA=AVX2.
All parts take about ten minutes, most of them in --parts search.
"""

import functools
import os
from collections.abc import Iterator

from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.options import chosen
from benchmarks.harness.results import Row
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line

PARTS = ("pairs", "weights", "kernels", "search", "training")


def main(parts: str = ",".join(PARTS), output: str = "") -> None:
    """Prints tables of plain and tuned kernels, of attention weights, and of thresholds.

    Args:
        parts: pairs: plain and tuned kernels. weights: attention with weights in its result, and
            without. kernels, search and training: thresholds.
        output: result file to write, like benchmarks/results/kernels_avx512.json.
    """
    names = chosen(parts, PARTS)
    found = {name: list(tqdm(rows_of(name), desc=name, unit="row")) for name in names}
    pairs, weights = found.pop("pairs", []), found.pop("weights", [])
    thresholds = [row for rows in found.values() for row in rows]
    for rows, left in ((pairs, 3), (weights, 1), (thresholds, 6)):
        if rows:
            print(f"{of_rows(rows, left=left)}\n")
    results.save(output, thresholds, ("tensorflow", "keras"), pairs=pairs, weights=weights)


def rows_of(part: str) -> Iterator[Row]:
    """The rows of a part."""
    if part == "training":
        from benchmarks.kernels import micro_batches

        cores = len(os.sched_getaffinity(0))
        numbers = tuple(sorted({1, cores, 2 * cores}))
        yield micro_batches.row(numbers, cores)
        return
    if part == "weights":
        from benchmarks.kernels import attention_weights

        yield from attention_weights.rows()
        return
    if part == "pairs":
        from benchmarks.kernels import pairs

        makers = [functools.partial(pairs.timed, work) for work in pairs.works()]
    else:
        from benchmarks.kernels import kernel_probes, probe, search_probes

        module = kernel_probes if part == "kernels" else search_probes
        makers = [functools.partial(probe.timed, made) for made in module.probes()]
    yield from (make() for make in makers)


if __name__ == "__main__":
    command_line.run(main)
