"""The workers of a SLURM job step, as the variable TF_CONFIG that TensorFlow reads.

TensorFlow's `SlurmClusterResolver` needs GPUs. It sorts the names of hosts as text, so that node10
comes before node9, and a process then takes the place of another.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping

from tf_transformer.errors import InputError

FIRST_PORT, PORTS = 20_000, 10_000  # below those that Linux gives to clients
_HOSTS = re.compile(r"([^,\[\]]+)(?:\[([\d,-]+)\])?(?:,|$)")
_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?(?:,|$)")


def is_step(environment: Mapping[str, str]) -> bool:
    """Whether `srun` has started this process."""
    return "SLURM_STEP_NODELIST" in environment


def tf_config(environment: Mapping[str, str]) -> str:
    """The value of TF_CONFIG for the process of a job step. An `InputError` names bad variables.

    Tasks of a node have ports in a row, from one on that depends on the job.

    Example:
        >>> step = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "1", "SLURM_STEP_NODELIST": "node[9-10]"}
        >>> tf_config(step | {"SLURM_STEP_TASKS_PER_NODE": "1(x2)"})
        '{"cluster": {"worker": ["node9:20007", "node10:20007"]}, "task": {...}}'
    """
    names = ("JOB_ID", "PROCID", "STEP_NODELIST", "STEP_TASKS_PER_NODE")
    job, process, nodes, tasks = (environment.get(f"SLURM_{name}", "") for name in names)
    port = FIRST_PORT + int(job or 0) % PORTS
    rows = [[int(count)] * int(times or 1) for count, times in _all(_TASKS, tasks)]
    counts = list(itertools.chain.from_iterable(rows))
    hosts = [host for prefix, ranges in _all(_HOSTS, nodes) for host in _hosts(prefix, ranges)]
    if not (counts and process) or len(hosts) != len(counts):
        raise InputError(
            f"expected the variables of a job step of SLURM, got SLURM_PROCID={process!r}, "
            f"SLURM_STEP_NODELIST={nodes!r} and SLURM_STEP_TASKS_PER_NODE={tasks!r}. Start the "
            "training with srun, or set TF_CONFIG."
        )
    workers = [
        f"{host}:{port + n}"
        for host, count in zip(hosts, counts, strict=True)
        for n in range(count)
    ]
    task = {"type": "worker", "index": int(process)}
    return json.dumps({"cluster": {"worker": workers}, "task": task})


def _all(pattern: re.Pattern[str], text: str) -> list[tuple[str, str | None]]:
    """The groups of all matches; [] if some of the text does not match."""
    matches = list(pattern.finditer(text))
    if "".join(match[0] for match in matches) != text:
        return []
    return [(match[1], match[2]) for match in matches]


def _hosts(prefix: str, ranges: str | None) -> Iterator[str]:
    """The names that a prefix and ranges such as 08-10,12 stand for."""
    if not ranges:
        yield prefix
        return
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield f"{prefix}{number:0{len(first)}}"
