"""TF_CONFIG from the variables of SLURM. Oracle: the manual of srun, on its variables."""

import json

import pytest

from tf_transformer.errors import InputError
from tf_transformer.training.slurm import tf_config


def step(nodes, tasks, process="0", job="1234567"):
    names = ("JOB_ID", "PROCID", "STEP_NODELIST", "STEP_TASKS_PER_NODE")
    values = (job, process, nodes, tasks)
    return {f"SLURM_{name}": value for name, value in zip(names, values, strict=True)}


@pytest.mark.parametrize(
    ("nodes", "tasks", "expected"),
    [
        ("localhost", "2", ["localhost:24567", "localhost:24568"]),
        ("n[9-10],login", "1(x3)", ["n9:24567", "n10:24567", "login:24567"]),
        ("tux[08,10],a-1", "2,1(x2)", ["tux08:24567", "tux08:24568", "tux10:24567", "a-1:24567"]),
    ],
)
def test_workers_are_the_tasks_in_the_order_of_their_ranks(nodes, tasks, expected):
    made = json.loads(tf_config(step(nodes, tasks, process="1")))
    assert made == {"cluster": {"worker": expected}, "task": {"type": "worker", "index": 1}}


@pytest.mark.parametrize(
    ("nodes", "tasks"), [("n[1-2", "1(x2)"), ("n[1-2]", "1"), ("n1", "one"), ("", "")]
)
def test_variables_that_do_not_fit_are_an_error(nodes, tasks):
    with pytest.raises(InputError, match=r"expected the variables of a job step of SLURM, got"):
        tf_config(step(nodes, tasks))
