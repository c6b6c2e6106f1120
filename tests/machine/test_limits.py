"""The limits of control groups, in a tree of files as the kernel has it."""

import math
import os
import pathlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.machine import limits

MASK, MEMORY = 16, 2**40
NO_LIMIT = 2**63 - 4096  # of memory in version 1


class Machine:
    """A machine with a tree of groups in one of the kernel's two versions."""

    def __init__(self, folder: pathlib.Path, version: int):
        self.version = version
        self.root, self.groups = folder / "cgroup", folder / "groups"

    def place(self, path: str, mounted: str = "") -> None:
        """Puts the process into a group; `mounted` is the group that a container sees as root."""
        lines = [f"4:memory:{path}", f"3:cpuset,cpu:{path}", "1:name=systemd:/other"]
        self.groups.write_text("\n".join([f"0::{path}"] if self.version == 2 else lines))
        self._mounted = mounted

    def limit(self, group: str, quota: float | None = None, memory: int | None = None) -> None:
        """Writes the files of a group; None: no limit."""
        inside = group.removeprefix(self._mounted).lstrip("/")
        if self.version == 2:
            text = "max" if quota is None else str(round(quota * 50_000))
            self._write(inside, "cpu.max", f"{text} 50000")
            self._write(inside, "memory.max", "max" if memory is None else str(memory))
        else:
            text = "-1" if quota is None else str(round(quota * 50_000))
            self._write(f"cpu/{inside}", "cpu.cfs_quota_us", text)
            self._write(f"cpu/{inside}", "cpu.cfs_period_us", "50000")
            value = NO_LIMIT if memory is None else memory
            self._write(f"memory/{inside}", "memory.limit_in_bytes", str(value))

    def _write(self, folder: str, name: str, text: str) -> None:
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / folder / name).write_text(text + "\n")


@pytest.fixture(params=[1, 2])
def machine(request, tmp_path, monkeypatch):
    made = Machine(tmp_path, request.param)
    monkeypatch.setattr(limits, "ROOT", made.root)
    monkeypatch.setattr(limits, "GROUPS", made.groups)
    monkeypatch.setattr(limits, "_cores_of_mask", lambda: MASK)
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": MEMORY // 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    return made


@pytest.mark.parametrize(
    ("quota", "cores"), [(1, 1), (0.5, 1), (1.5, 2), (2.0, 2), (15.9, 16), (99, 16), (None, 16)]
)
def test_cores_are_the_smaller_of_mask_and_quota(machine, quota, cores):
    machine.place("/")
    machine.limit("/", quota)
    assert limits.available_cores() == cores


def test_the_smallest_limit_of_nested_groups_counts(machine):
    machine.place("/a/b")
    machine.limit("/a/b", quota=7, memory=7 * 2**30)
    machine.limit("/a", quota=3, memory=3 * 2**30)
    machine.limit("/a/b/c", quota=1, memory=2**30)  # another process is in there
    assert limits.available_cores() == 3
    assert limits.total_memory() == 3 * 2**30


def test_a_container_is_the_root_of_the_groups_that_it_sees(machine):
    machine.place("/docker/4f1c", mounted="/docker/4f1c")
    machine.limit("/docker/4f1c", quota=2, memory=5 * 2**30)
    assert limits.available_cores() == 2
    assert limits.total_memory() == 5 * 2**30


def test_a_machine_without_groups_has_no_limits(machine):
    assert limits.available_cores() == MASK
    assert limits.total_memory() == MEMORY


# The oracle: the smallest number of all groups, and of the machine.
group_limits = st.tuples(
    st.none() | st.integers(1, 3200).map(lambda hundredths: hundredths / 100),
    st.none() | st.integers(2**20, 2**41),
)


@given(st.lists(group_limits, min_size=1, max_size=5), st.sampled_from([1, 2]))
def test_any_tree_of_groups_gives_its_smallest_limit(tmp_path_factory, groups, version):
    made = Machine(tmp_path_factory.mktemp("groups"), version)
    names = ["/" + "/".join("abcd"[:depth]) for depth in range(len(groups))]
    made.place(names[-1])
    for name, (quota, memory) in zip(names, groups, strict=True):
        made.limit(name, quota, memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "ROOT", made.root)
        patch.setattr(limits, "GROUPS", made.groups)
        patch.setattr(limits, "_cores_of_mask", lambda: MASK)
        cores = [quota for quota, _ in groups if quota is not None]
        assert limits.available_cores() == math.ceil(min([MASK, *cores]))
        memory = [number for _, number in groups if number is not None]
        real = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        assert limits.total_memory() == min([real, *memory])


def test_a_quota_limits_the_threads_of_libraries(machine, monkeypatch):
    for name in limits._THREADS:
        monkeypatch.delenv(name, raising=False)
    machine.place("/")
    machine.limit("/", quota=None)
    limits.limit_threads()
    assert not set(limits._THREADS) & os.environ.keys()
    machine.limit("/", quota=2.5)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # the user's choice
    limits.limit_threads()
    assert [os.environ[name] for name in limits._THREADS] == ["3", "3", "7"]


COUNT_THREADS = """
import os
import tensorflow as tf
tf.linalg.matmul(tf.ones((512, 512)), tf.ones((512, 512)))
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/task").is_dir(), reason="reads Linux' list")
def test_tensorflow_starts_as_many_threads_as_the_variables_say():
    def threads(count):
        given = {name: str(count) for name in limits._THREADS if name.startswith("TF_")}
        environment = os.environ | given | {"OMP_NUM_THREADS": "1"}
        program = [sys.executable, "-c", COUNT_THREADS]
        return int(subprocess.run(program, env=environment, capture_output=True, check=True).stdout)

    assert threads(7) - threads(2) == 2 * (7 - 2)  # operations at a time, and threads of one
