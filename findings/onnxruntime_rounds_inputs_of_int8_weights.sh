#!/usr/bin/env bash
# onnxruntime: weights in int8 alone make products whose other input is rounded to int8, too.
#
# Guess:  a DequantizeLinear of int8 weights before a MatMul stores weights, and the product computes in float32.
# Seen:   on CPUs, both nodes become one MatMulNBits with accuracy level 4, which rounds the other input in blocks of
#         32 numbers. The option session.disable_quant_qdq=1 gives the float32 product of the rounded weights.
# With:   onnxruntime 1.32.0, onnx 1.23.2, NumPy 2.4.6, Python 3.11, Linux on x86-64 with AVX-512, 30 November 2026.
# Effect: a file that only stores weights in int8 also rounds activations on CPUs, and is less exact than its weights.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
env/bin/python - <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
x, weights = (rng.normal(size=shape).astype("float32") for shape in ((4, 512), (512, 256)))
scale = np.abs(weights).max(axis=0) / np.float32(127)
rounded = np.rint(weights / scale).astype("int8")
graph = helper.make_graph(
    [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ],
    "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 512])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 256])],
    [numpy_helper.from_array(rounded, "q"), numpy_helper.from_array(scale, "s")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
expected = x @ (rounded * scale)  # what the nodes say


def error(**entries):
    options = onnxruntime.SessionOptions()
    for name, value in entries.items():
        options.add_session_config_entry(f"session.{name}", value)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return float(np.abs(session.run(None, {"x": x})[0] - expected).max())


by_default, without = error(), error(disable_quant_qdq="1")
print(f"largest error of a product: by default {by_default:.1e}, with disable_quant_qdq {without:.1e}")
assert by_default > 100 * without
PY
