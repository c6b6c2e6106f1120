#!/usr/bin/env bash
# LiteRT: each signature of a file has a copy of the weights in memory, though the file has them once.
#
# Guess:  signatures that share weights in a file share them in memory, too.
# Seen:   a file of 17 MB with one matrix of 16.8 MB and six signatures takes six times 16.8 MB when it is loaded.
#         XNNPACK orders the matrix again for each signature. With `xnnpack_weight_cache_path`, they share one order.
# With:   ai-edge-litert 2.3.0, tensorflow 2.21.0, Python 3.11, Linux on x86-64, 30 November 2026.
# Effect: a ladder of lengths for one model takes as many times its memory. Give CompiledModel a file for this cache.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0 ai-edge-litert==2.3.0
export TF_CPP_MIN_LOG_LEVEL=3
env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import pathlib

import tensorflow as tf

SIZE = 2048


class Model(tf.Module):
    def __init__(self):
        self.matrix = tf.Variable(tf.random.stateless_uniform((SIZE, SIZE), (1, 2)))


model = Model()
signatures = {
    f"rows_{n}": tf.function(lambda x: {"y": tf.matmul(x, model.matrix)}).get_concrete_function(
        tf.TensorSpec((n, SIZE), tf.float32, name="x")
    )
    for n in range(1, 7)
}
tf.saved_model.save(model, "saved", signatures=signatures)
converter = tf.lite.TFLiteConverter.from_saved_model("saved", signature_keys=list(signatures))
pathlib.Path("model.tflite").write_bytes(converter.convert())
PY
cat > load.py <<'PY'
import sys

from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.cpu_options import CpuOptions
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
from ai_edge_litert.options import Options


def megabytes():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * 4096 / 1e6


before = megabytes()
cpu = CpuOptions(num_threads=1, xnnpack_weight_cache_path=sys.argv[1])
options = Options(hardware_accelerators=HardwareAccelerator.CPU, cpu_options=cpu)
model = CompiledModel.from_file("model.tflite", options=options)
print(round(megabytes() - before))
PY
size=$(($(stat --format %s model.tflite) / 1000000))
without=$(env/bin/python load.py "" 2> /dev/null)
with=$(env/bin/python load.py "$folder/cache" 2> /dev/null)
echo "file $size MB; memory for six signatures: $without MB, with a cache of weights $with MB"
test "$size" -le 18
test "$without" -ge 90
test "$with" -le 60
