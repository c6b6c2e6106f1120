"""Starts training runs in processes of their own, to kill them or to let them work together."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import tensorflow as tf

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = {
    "model.num_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "data.generated_pairs": 60,
    "data.held_out": 20,
    "data.vocabulary_size": 320,
    "data.batch_tokens": 300,
    "data.max_length": 100,
    "train.warmup_steps": 10,
    "train.valid_score_examples": 4,
    "train.deterministic": "true",
    "train.average_decay": 0.9,
}


def start(run_dir, workers=None, index=0, **options) -> subprocess.Popen:
    """Starts train.py; as one of several workers, given their addresses."""
    words = [f"--{name}={value}" for name, value in (OPTIONS | options).items()]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if workers:
        task = {"type": "worker", "index": index}
        environment["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    return subprocess.Popen(
        [sys.executable, "train.py", "--run_dir", str(run_dir), *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen, status: int = 0) -> tuple[str, str]:
    """Waits for the end and checks the exit status; returns stdout and stderr."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == status, errors
    return output, errors


def free_addresses(count: int) -> list[str]:
    """Unused addresses on loopback."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def saved_updates(run_dir) -> int:
    """The updates in the checkpoint to resume from; 0 without one."""
    latest = tf.train.latest_checkpoint(str(pathlib.Path(run_dir) / "checkpoints" / "resume"))
    return int(latest.rpartition("-")[2]) if latest else 0


def whole_state(run_dir) -> dict[str, np.ndarray]:
    """Every variable in the checkpoint to resume from."""
    latest = tf.train.latest_checkpoint(str(pathlib.Path(run_dir) / "checkpoints" / "resume"))
    reader = tf.train.load_checkpoint(latest)
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE") and not name.startswith("save_counter")
    }


def assert_same_state(one, other):
    """Bit for bit."""
    ours, theirs = whole_state(one), whole_state(other)
    assert ours.keys() == theirs.keys()
    kinds = {name.split("/")[0] for name in ours}
    assert kinds >= {"weights", "optimizer", "random_state", "standing", "choice"}
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
