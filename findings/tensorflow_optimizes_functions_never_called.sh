#!/usr/bin/env bash
# TensorFlow: a session optimizes functions that no branch calls; the mark that prevents it leaves out their loops.
#
# Guess:  a function with the attribute `_noinline`, in a branch that is not taken, costs nothing before the first
#         answer. Or, with the mark `_tf_data_function`, whose functions TensorFlow optimizes when they run.
# Seen:   the session optimizes the function and its loop before the first answer. With the mark it leaves out the
#         function, but not the function's loop, as soon as there is any other function to optimize.
# With:   tensorflow 2.21.0, Python 3.11, Linux on x86-64, 29 November 2026. Its log at level 1 lists the functions.
# Effect: a server's first answer waits for the optimization of all rare cases: 4.7 of 10.8 s for an export of ours.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0
cat > answer.py <<'PY'
import sys

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

NUMBER = [tf.TensorSpec([], tf.int32)]
mark = {"_tf_data_function": True} if sys.argv[1] == "marked" else {}


def loop(name, times, **attributes):
    def of(x):
        return tf.while_loop(lambda i, x: i < times, lambda i, x: (i + 1, x + i), (0, x))[1]

    of.__name__ = name
    attributes["_noinline"] = True
    return tf.function(of, NUMBER, autograph=False, experimental_attributes=attributes)


never, always = loop("never", 3, **mark), loop("always", 5)
model = tf.Module()
model.answer = tf.function(
    lambda x: tf.cond(x > 1000, lambda: never(x), lambda: always(x)), NUMBER, autograph=False
)
tf.saved_model.save(model, "model", {"serving_default": model.answer})
with open("model/saved_model.pb", "rb") as file:
    saved = saved_model_pb2.SavedModel.FromString(file.read())
loop_of_never = next(
    node.attr["body"].func.name
    for function in saved.meta_graphs[0].graph_def.library.function
    if "never" in function.signature.name
    for node in function.node_def
    if "body" in node.attr
)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    loaded = tf.compat.v1.saved_model.load(session, ["serve"], "model")
    signature = loaded.signature_def["serving_default"]
    (x,), (y,) = signature.inputs.values(), signature.outputs.values()
    assert session.run(y.name, {x.name: 1}) == 11
print(loop_of_never)
PY
for kind in plain marked; do
    TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_MAX_VLOG_LEVEL=1 TF_CPP_VMODULE=meta_optimizer=1 \
        env/bin/python answer.py "$kind" > "$kind.loop" 2> "$kind.log"
    grep --only-matching 'Optimized [1-9][0-9]* functions: .*' "$kind.log" > "$kind.optimized"
    echo "$kind: the loop of the function that is never called is $(cat "$kind.loop"). $(cat "$kind.optimized")"
    grep --quiet --word-regexp "$(cat "$kind.loop")" "$kind.optimized"
done
grep --quiet __inference_never_ plain.optimized
! grep --quiet __inference_never_ marked.optimized
