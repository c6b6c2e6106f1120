"""Compares the defaults that training chooses by the corpus with fixed ones, with equal CPU time.

    python -m research.first_defaults --runs runs/first_defaults \
        --output research/results/first_defaults.json

For each corpus two models train at the same time, each on a core of its own. A training run
gets the signal to stop when its process has used its CPU time, so that other programs on the
machine do not count. Then evaluate.py scores it with its own defaults, and with the best weights.
The same command again makes the training runs that have no scores yet.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations import split_text
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole
from tf_transformer.run.folder import RunFolder

FIXED = {  # the defaults of `Config`
    **{"data.vocabulary_size": 8000, "data.batch_tokens": 2048, "model.dropout_rate": 0.1},
    **{"model.num_layers": 4, "model.d_model": 128, "model.d_ff": 256, "model.num_heads": 4},
    **{"train.warmup_steps": 1000, "train.epochs": 30},
}
ARMS: dict[str, dict[str, Any]] = {"fixed": FIXED, "chosen": {}}
# One core computes one batch at a time; measuring this would use up the time of short training
# runs.
ONE_CORE = {"train.threads": 1, "train.micro_batches": 1, "train.jit_compile": "false"}
SAMPLE = 5000  # pairs


class Corpus(NamedTuple):
    """A corpus: files of training and test text, by side, and the CPU minutes of a training run."""

    name: str
    train: Sequence[str]
    test: Sequence[str]
    minutes: float


def main(
    runs: str,
    minutes: str = "4,8,10",
    cores: str = "0,1",
    data: str = "",
    output: str = "",
) -> None:
    """Trains with chosen and with fixed defaults, and prints the BLEU of each.

    Args:
        runs: folder for the runs and for prepared text.
        minutes: CPU minutes of a training run with 5,000 pairs of Multi30k, with all pairs, and
            with Tatoeba.
        cores: numbers of the cores of the two training runs.
        data: the data folder; TF_TRANSFORMER_DATA when empty.
        output: result file to write, for example research/results/first_defaults.json.
    """
    folder = data or os.environ.get("TF_TRANSFORMER_DATA", "")
    if not folder:
        raise InputError("give --data, or set TF_TRANSFORMER_DATA to the folder of the corpora.")
    rows = []
    for corpus in corpora(pathlib.Path(folder), pathlib.Path(runs), minutes):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(outcome, pathlib.Path(runs), corpus, arm, core)
                for arm, core in zip(ARMS, cores.split(","), strict=True)
            ]
        rows += [job.result() for job in jobs]
    print(of_rows(rows, left=3))
    results.save(output, rows, ("tensorflow", "keras", "sentencepiece", "sacrebleu"))


def corpora(data: pathlib.Path, folder: pathlib.Path, minutes: str) -> list[Corpus]:
    """The corpora; those that are parts of others are written to a folder."""
    captions, tatoeba = data / "multi30k", data / "tatoeba_en_de"
    sample, divided = folder / "text" / "sample", folder / "text" / "tatoeba"
    sides = ("en", "de")
    sample.mkdir(parents=True, exist_ok=True)
    for side in sides:
        lines = (captions / f"train.{side}").read_text("utf-8").split("\n")[:SAMPLE]
        write_whole(sample / f"train.{side}", "".join(f"{line}\n" for line in lines))
    if not divided.is_dir():
        split_text.main(*(str(tatoeba / f"all.{side}") for side in sides), str(divided))

    def paths(place: pathlib.Path, name: str) -> list[str]:
        return [str(place / f"{name}.{side}") for side in sides]

    test = paths(captions, "test_2016_flickr")
    texts = [
        ("Multi30k, 5,000 pairs", paths(sample, "train"), test),
        ("Multi30k, 29,000 pairs", paths(captions, "train"), test),
        ("Tatoeba", paths(divided, "train"), paths(divided, "test")),
    ]
    budgets = map(float, minutes.split(","))
    return [Corpus(*text, budget) for text, budget in zip(texts, budgets, strict=True)]


def outcome(runs: pathlib.Path, corpus: Corpus, arm: str, core: str) -> dict[str, Any]:
    """The row of a training run, which is trained and scored unless that has been done."""
    run = RunFolder(runs / f"{pathlib.Path(corpus.train[0]).parent.name}_{arm}")
    file = run.path / "outcome.json"
    if not file.is_file():
        shutil.rmtree(run.path, ignore_errors=True)  # of a training run that was interrupted
        train(run, corpus, arm, core)
        scores = {average: score(run, corpus, average, core) for average in ("5", "best")}
        write_whole(file, json.dumps(scores))
    scores, config = json.loads(file.read_bytes()), run.load_config()
    return {
        **{"corpus": corpus.name, "defaults": arm, "cpu_minutes": corpus.minutes},
        **{"vocabulary": config.data.vocabulary_size, "layers": config.model.num_layers},
        **{"dropout": config.model.dropout_rate, "batch_tokens": config.data.batch_tokens},
        **{"warmup": config.train.warmup_steps, "updates": run.load_metrics()[-1]["step"]},
        **{"bleu": round(scores["5"]["bleu"], 2), "chrf": round(scores["5"]["chrf"], 2)},
        "bleu_best": round(scores["best"]["bleu"], 2),
    }


def train(run: RunFolder, corpus: Corpus, arm: str, core: str) -> None:
    """Trains until the process has used its CPU time; its checkpoints stay."""
    source, target = corpus.train
    words = ["--data.train_source", source, "--data.train_target", target]
    for name, value in (ARMS[arm] | ONE_CORE).items():
        words += [f"--{name}", str(value)]
    process = subprocess.Popen(on_core(core, "train", run, words), stdout=sys.stderr)
    while process.poll() is None:
        time.sleep(1)
        if cpu_seconds(process.pid) >= 60 * corpus.minutes:
            process.send_signal(signal.SIGTERM)
            process.wait()
    if process.returncode not in (0, 128 + signal.SIGTERM):
        raise InputError(f"{run.path}: training ended with status {process.returncode}.")


def score(run: RunFolder, corpus: Corpus, average: str, core: str) -> dict[str, Any]:
    """The scores of evaluate.py on the test set."""
    source, reference = corpus.test
    words = ["--source", source, "--reference", reference, "--average", average]
    program = on_core(core, "evaluate", run, words)
    done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def on_core(core: str, command: str, run: RunFolder, words: Sequence[str]) -> list[str]:
    """A command of the package as a program with a low priority on one core."""
    program = ["taskset", "-c", core, "nice", "-n", "10", sys.executable]
    program += ["-m", "tf_transformer.commands.main", command]
    return [*program, "--run_dir", str(run.path), *words]


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and of its children that have ended; 0 after its end."""
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


if __name__ == "__main__":
    command_line.run(main)
