#!/usr/bin/env bash
# Keras and tf.distribute: gradients are clipped on each replica, before they are added.
#
# Guess:  under MirroredStrategy, global_clipnorm clips the gradient of the whole batch, as on one device.
# Seen:   each replica clips the gradient of its own part first. The sum may then be longer than the limit, and its
#         direction is another one: one update of SGD with global_clipnorm 1 moves the weight by 1.0 on one device and
#         by 1.1 on two replicas.
# With:   tensorflow 2.21.0, keras 3.15.1, two logical CPU devices, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: the same recipe makes other updates on two devices, without a warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
x = np.ones((2, 1), "float32")
y = np.array([[0.1], [100.0]], "float32")  # squared errors with gradients of -0.2 and -200


def weight_after_one_update(strategy, **limit):
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
        model.compile(keras.optimizers.SGD(1.0, **limit), loss="mse")
    model.fit(x, y, batch_size=2, verbose=0)
    return float(model.get_weights()[0][0, 0])


one, two = tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
unlimited = [weight_after_one_update(strategy) for strategy in (one, two)]
limited = [weight_after_one_update(strategy, global_clipnorm=1.0) for strategy in (one, two)]
print("one device, two replicas: without a limit", unlimited, "with global_clipnorm=1", limited)
assert np.allclose(unlimited, 100.1)
assert np.allclose(limited, [1.0, 1.1])  # 1.1 = 0.1 + 1.0: the parts are limited one by one
PY
