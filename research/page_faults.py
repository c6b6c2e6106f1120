"""Page faults, time and memory of whole commands, with glibc's defaults and with kept memory.

    python -m research.page_faults --train_config research/configs/multi30k_quick.yaml \
        --run_dir runs/multi30k --saved_model served/multi30k/1 --source test_2016_flickr.en

See `tf_transformer.machine.heap`. The commands run one after the other, each in a process of its
own; the two settings take turns. A server has the same options in its environment.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.results import Row
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line

ROOT = pathlib.Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "tf_transformer.commands.main"]
# Any option of malloc in the environment stops a command from setting its own. This one has no
# effect.
DEFAULTS = {"MALLOC_PERTURB_": "0"}
KEPT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "2147483647",
}


def main(
    train_config: str = "research/configs/multi30k_quick.yaml",
    run_dir: str = "",
    saved_model: str = "",
    source: str = "",
    updates: int = 100,
    rounds: int = 3,
    output: str = "",
) -> None:
    """Measures training, and translation by a run and by its export.

    Args:
        train_config: configuration of the training.
        run_dir: a trained run; translates `source`.
        saved_model: an export of it; translates `source` in a session, as a server does.
        source: file of sentences.
        updates: of the training.
        rounds: of each command with each setting.
        output: result file to write, for example research/results/page_faults.json.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        train = ["train", "--config", train_config, "--train.steps", str(updates)]
        works: dict[str, Sequence[str]] = {
            f"train.py, {updates} updates": [*COMMAND, *train, "--run_dir", f"{folder}/run"]
        }
        if run_dir:
            translate = ["translate", "--run_dir", run_dir, "--output", f"{folder}/output"]
            works["translate.py"] = [*COMMAND, *translate, "--input", source]
        if saved_model:
            works["export in a session"] = [
                *(sys.executable, str(ROOT / "export" / "run_in_session.py"), saved_model)
            ]
        for work, program in works.items():
            kept = KEPT if work.startswith("export") else {}
            rows += _measured(work, program, {"off": DEFAULTS, "on": kept}, source, rounds, folder)
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"))


def _measured(
    work: str,
    program: Sequence[str],
    settings: Mapping[str, Mapping[str, str]],
    source: str,
    rounds: int,
    folder: str,
) -> list[Row]:
    """A row for each setting: medians of all rounds."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in settings}
    for _ in tqdm(range(rounds), desc=work, unit="round"):
        for name, environment in settings.items():
            subprocess.run(["rm", "-rf", f"{folder}/run", f"{folder}/output"], check=True)
            found[name].append(_usage(program, environment, source))
    return [
        {
            "work": work,
            "kept": name,
            **{key: statistics.median(usage[key] for usage in usages) for key in usages[0]},
        }
        for name, usages in found.items()
    ]


def _usage(program: Sequence[str], environment: Mapping[str, str], source: str) -> dict[str, float]:
    """The cost of a process, from start to end."""
    inherited = {name: x for name, x in os.environ.items() if not name.startswith("MALLOC_")}
    start = time.perf_counter()
    with open(source or os.devnull, "rb") as lines:
        process = subprocess.Popen(
            program,
            cwd=ROOT,
            env={**inherited, **environment},
            stdin=lines,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), program)
    return {
        "minor_faults": usage.ru_minflt,
        "system_seconds": round(usage.ru_stime, 1),
        "user_seconds": round(usage.ru_utime, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_mb": round(usage.ru_maxrss / 2**10),
    }


if __name__ == "__main__":
    command_line.run(main)
