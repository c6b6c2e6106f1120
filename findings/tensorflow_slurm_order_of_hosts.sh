#!/usr/bin/env bash
# TensorFlow: SlurmClusterResolver sorts the names of hosts as text, so task 1 of node[8-10] gets the address of task 0.
#
# Guess:  the resolver's workers stand in the order of SLURM_STEP_NODELIST, in which SLURM numbers the tasks.
# Seen:   the workers of node[8-10] are node10, node8, node9. Task 1 runs on node9, and the cluster says that it is at
#         node8. Nodes whose numbers have equally many digits are in order, so only some jobs have the fault.
# With:   tensorflow 2.21.0, Python 3.11, Linux on x86-64, 30 November 2026. Variables as srun sets them.
# Effect: workers connect to addresses where other tasks listen. This project's own resolver keeps the order.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0
cat > resolve.py <<'PY'
import os
import sys

import tensorflow as tf

nodes, process = sys.argv[1:]
os.environ.update(
    SLURM_PROCID=process,
    SLURM_STEP_NUM_TASKS="3",
    SLURM_STEP_TASKS_PER_NODE="1(x3)",
    SLURM_STEP_NODELIST=nodes,
)
resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
    auto_set_gpu=False, gpus_per_node=1, gpus_per_task=1
)
workers = resolver.cluster_spec().as_dict()["worker"]
print(*workers, "task", resolver.get_task_info()[1], "is at", workers[resolver.get_task_info()[1]])
PY
export TF_CPP_MIN_LOG_LEVEL=3
env/bin/python resolve.py 'node[8-10]' 1 2> /dev/null | tee crossing
env/bin/python resolve.py 'node[10-12]' 1 2> /dev/null | tee within
grep --quiet 'node10:8888 node8:8888 node9:8888 task 1 is at node8:8888' crossing
grep --quiet 'node10:8888 node11:8888 node12:8888 task 1 is at node11:8888' within
