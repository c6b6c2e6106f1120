#!/usr/bin/env bash
# Keras 3 and TensorFlow Serving: a tf.Module that holds a Keras model is saved, loads in Python and fails in a server.
#
# Guess:  a SavedModel that tf.saved_model.load reads and runs can be served.
# Seen:   tf.saved_model.save succeeds, and tf.saved_model.load gives the right output. A session, which is how
#         TensorFlow Serving runs a signature, fails with "Could not find variable …". The export of
#         keras.export.ExportArchive of the same model runs in both.
# With:   tensorflow 2.21.0, keras 3.15.1, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: an export that every test in Python passes answers each request with an error. Test exports in a session.
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


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return self.dense(x)


class Module(tf.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    @tf.function(input_signature=[tf.TensorSpec((None, 3), name="x")])
    def __call__(self, x):
        return {"y": self.model(x)}


def in_session(path, x):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = loaded.signature_def["serving_default"]
        (fed,), (fetched,) = signature.inputs.values(), signature.outputs.values()
        return session.run(fetched.name, {fed.name: x})


x = np.ones((1, 3), "float32")
model = Model()
expected = np.array(model(x))
module = Module(model)
tf.saved_model.save(module, "module", signatures=module.__call__)
archive = keras.export.ExportArchive()
archive.track(model)
archive.add_endpoint("serve", model.call, [tf.TensorSpec((None, 3), name="x")])
archive.write_out("archive", verbose=False)

loaded = tf.saved_model.load("module").signatures["serving_default"](tf.constant(x))["y"]
assert np.allclose(loaded, expected)
assert np.allclose(in_session("archive", x), expected)
try:
    in_session("module", x)
except tf.errors.FailedPreconditionError as error:
    (reason,) = [line for line in str(error).splitlines() if "Could not find variable" in line]
    print("tf.saved_model.load and ExportArchive: right. Module in a session:", reason.split(".")[0])
else:
    raise SystemExit("the module now runs in a session, too")
PY
