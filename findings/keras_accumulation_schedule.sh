#!/usr/bin/env bash
# Keras: gradient accumulation runs a learning rate schedule on batches, not on updates.
#
# Guess:  with gradient_accumulation_steps=4, a schedule sees the number of updates, as `optimizer.iterations` does.
# Seen:   the schedule sees the number of batches, so warm-up and decay end four times too early.
#         8 batches: iterations 2, but the rate is that of step 8; the two updates had the rates of steps 3 and 7.
# With:   keras 3.15.1, jax 0.10.2 as its backend, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: a recipe with 4,000 warm-up updates warms up for 1,000. Multiply the schedule's steps by the accumulation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet keras==3.15.1 jax==0.10.2
KERAS_BACKEND=jax env/bin/python - <<'PY'
import keras
import numpy as np


class Ramp(keras.optimizers.schedules.LearningRateSchedule):
    """Rate 0.1 times the step."""

    def __call__(self, step):
        return 0.1 * keras.ops.cast(step, "float32")

    def get_config(self):
        return {}


weight = keras.Variable(np.zeros(1, "float32"))
optimizer = keras.optimizers.SGD(Ramp(), gradient_accumulation_steps=4)
optimizer.build([weight])
for _ in range(8):
    optimizer.apply([keras.ops.ones(1)])
updates, rate = int(optimizer.iterations), float(optimizer.learning_rate)
change = -float(weight.numpy()[0])
print(f"updates {updates}, rate {rate:.1f} (0.2 at step 2), sum of the rates used {change:.1f} (0.1 at steps 0 and 1)")
assert updates == 2
assert np.isclose(rate, 0.8) and np.isclose(change, 0.3 + 0.7)
PY
