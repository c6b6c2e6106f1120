"""GPUs beside a training run. The tests need none: fakes show which settings are made."""

import os
import subprocess
import types

import pytest
import tensorflow as tf

from tf_transformer.commands import command_line, export, train
from tf_transformer.commands import main as commands
from tf_transformer.export import to_saved_model
from tf_transformer.export.check import session
from tf_transformer.machine import gpus
from tf_transformer.run.folder import RunFolder

GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"


@pytest.fixture
def settings(monkeypatch):
    """The environment without the options; changes last for one test."""
    monkeypatch.setattr(command_line, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(command_line, "limit_threads", lambda: None)
    monkeypatch.setenv(GROWTH, "")
    monkeypatch.delenv(GROWTH)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_all_commands_but_training_share_a_gpu(name, settings):
    command_line._use_machine(commands.command(name))
    assert os.environ.get(GROWTH) == (None if name in ("train", "distill") else "true")


def test_the_users_own_choice_stays(settings, monkeypatch):
    monkeypatch.setenv(GROWTH, "false")
    gpus.share_gpus()
    assert os.environ[GROWTH] == "false"


def test_the_process_that_checks_an_export_sees_no_gpu(tmp_path, monkeypatch):
    started = {}

    class Started(Exception):  # noqa: N818  no error
        pass

    def popen(words, **options):
        started.update(options)
        raise Started

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(Started), session(tmp_path):
        pass
    assert started["env"] == os.environ | {"CUDA_VISIBLE_DEVICES": ""}


def test_an_export_during_a_training_sees_no_gpu(tmp_path, monkeypatch):
    started = {}

    def popen(words, **options):
        started.update(options, words=words)
        return types.SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    train.export(RunFolder(tmp_path), 3)
    assert "export" in started["words"]
    assert started["env"]["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("error", [None, RuntimeError("Visible devices cannot be modified")])
def test_an_export_computes_on_the_cpu(error, run, tmp_path, monkeypatch):
    calls = []

    def hide(devices, kind):
        calls.append((devices, kind))
        if error:
            raise error

    def write(*_):
        calls.append("write")
        return "summary"

    monkeypatch.setattr(tf.config, "set_visible_devices", hide)
    monkeypatch.setattr(to_saved_model, "write", write)
    export.main(str(run), str(tmp_path / "1"))
    assert calls == [([], "GPU"), "write"]


ON_GPU = "OOM when allocating tensor with shape[9] on /device:GPU:0 by allocator GPU_0_bfc"


@pytest.mark.parametrize(
    ("message", "is_full"),
    [
        (ON_GPU, True),
        ("failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory", True),
        ("BLAS operation using StreamExecutor without BLAS support", True),
        ("OOM when allocating tensor with shape[9] on /device:CPU:0 by allocator cpu", False),
        ("[Errno 12] Cannot allocate memory", False),
        ("another error on /device:GPU:0", False),
    ],
)
def test_the_errors_of_a_full_gpu_are_known(message, is_full):
    assert bool(gpus.explain_full(RuntimeError(message))) == is_full


def test_a_command_says_that_the_gpu_is_full(settings):
    def main():
        """Runs out of memory."""
        raise tf.errors.ResourceExhaustedError(None, None, ON_GPU)

    with pytest.raises(SystemExit) as stopped:
        command_line.run(main, [])
    assert stopped.value.code == (
        f"error: the memory of the GPU is full: {ON_GPU}. Other processes may use it; nvidia-smi "
        "lists them. Wait for them, make batches smaller, or give CUDA_VISIBLE_DEVICES= before the "
        "command to compute on the CPU."
    )


def test_other_errors_stay(settings):
    def main():
        """Fails."""
        raise ValueError("a fault of the program")

    with pytest.raises(ValueError, match="a fault of the program"):
        command_line.run(main, [])
