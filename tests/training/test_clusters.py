"""Two processes with the environment variables that SLURM and Kubeflow set, on loopback."""

import json
import os
import pathlib
import shlex
import socket
import subprocess
import sys

import pytest
import yaml
from training import processes

from tf_transformer.commands import train
from tf_transformer.commands.command_line import read_options
from tf_transformer.training.slurm import FIRST_PORT

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = processes.OPTIONS | {"train.steps": 4, "train.validate_every": 4, "train.threads": 1}


def words_of(example) -> list[str]:
    """The options of the training in a file of examples/."""
    text = (ROOT / "examples" / example).read_text("utf-8")
    if example.endswith(".yaml"):
        pod = yaml.safe_load(text)["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
        return pod["containers"][0]["args"]
    command = text.partition("srun ")[2].replace("\\\n", " ")
    return shlex.split(command)[2:]


def start(run_dir, strategy, **variables) -> subprocess.Popen:
    words = [f"--{name}={value}" for name, value in OPTIONS.items()]
    return subprocess.Popen(
        [sys.executable, "train.py", "--run_dir", str(run_dir), *strategy, *words],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def job_with_free_ports() -> int:
    """The number of a job of SLURM whose first two ports nobody uses."""
    for job in range(os.getpid() % 5000, 10_000):
        try:
            for port in (FIRST_PORT + job, FIRST_PORT + job + 1):
                with socket.socket() as tried:
                    tried.bind(("", port))
        except OSError:
            continue
        return job
    raise OSError("no two ports are free")


@pytest.mark.parametrize("example", ["slurm.sh", "tfjob.yaml"])
def test_files_to_copy_have_options_that_training_takes(example):
    data = read_options(train.main, words_of(example))["data"]
    assert [(corpus.source, corpus.target) for corpus in data.corpora] == [("a.en", "b.de")]


@pytest.mark.slow
def test_two_tasks_of_slurm_train_together(tmp_path):
    job = str(job_with_free_ports())
    step = {"SLURM_JOB_ID": job, "SLURM_STEP_NODELIST": "localhost"}
    step |= {"SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NUM_TASKS": "2"}
    strategy = words_of("slurm.sh")[:2]
    assert strategy == ["--train.strategy", "multi_worker"]
    tasks = [start(tmp_path, strategy, **step, SLURM_PROCID=str(rank)) for rank in range(2)]
    outputs = [processes.finish(task)[0] for task in tasks]
    assert all("trained 4 updates" in output for output in outputs)
    assert ["2 replica(s)" in output for output in outputs] == [True, False]  # the chief's line


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["worker", "worker"], ["chief", "worker"]])
def test_two_pods_of_kubeflow_train_together(tmp_path, kinds):
    """With worker replicas only, as in the file to copy, and with a chief."""
    addresses = processes.free_addresses(2)
    cluster = {kind: [] for kind in kinds}
    pods = []
    for kind, address in zip(kinds, addresses, strict=True):
        pods.append({"type": kind, "index": len(cluster[kind])})
        cluster[kind].append(address)
    configs = [{"cluster": cluster, "task": task, "environment": "cloud"} for task in pods]
    started = [start(tmp_path, [], TF_CONFIG=json.dumps(config)) for config in configs]
    outputs = [processes.finish(pod)[0] for pod in started]
    assert all("trained 4 updates" in output for output in outputs)
    assert ["2 replica(s)" in output for output in outputs] == [True, False]
