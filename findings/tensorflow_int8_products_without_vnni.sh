#!/usr/bin/env bash
# TensorFlow's int8 product with oneDNN: on processors without VNNI its sums are too small, and nothing says so.
#
# Guess:  QuantizedMatMulWithBiasAndDequantize adds products of 8-bit integers in 32 bits, so integer inputs give the
#         exact product on every processor.
# Seen:   exact with the VNNI instructions. Without them (here switched off by ONEDNN_MAX_CPU_ISA=AVX2), pairs of
#         products are added in 16 bits, which saturate: with inputs of 128 to 255 and weights of 64 to 127, the result
#         is 16 % too small. With weights of at most 64 it is exact again, because 2 · 255 · 64 < 2^15.
# With:   tensorflow 2.21.0, Python 3.11, Linux on x86-64 (AVX-512 with VNNI), 29 November 2026.
# Effect: a quantized SavedModel that is right on the machine that exported it answers wrongly on an older server.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0
cat > product.py <<'PY'
import sys

import numpy as np
import tensorflow as tf

lowest, highest = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
x = rng.integers(128, 256, (2, 512)).astype(np.uint8)
weights = rng.integers(lowest, highest, (512, 8), endpoint=True).astype(np.int8)


@tf.function
def product(x):
    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=tf.bitcast(x, tf.quint8),
        b=tf.bitcast(tf.constant(weights), tf.qint8),
        bias=tf.zeros(8),
        # Ranges with a scale of 1: the product of the integers.
        min_a=0.0,
        max_a=255.0,
        min_b=-127.0,
        max_b=127.0,
        min_freezed_output=-1.0,
        max_freezed_output=1.0,
        Toutput=tf.float32,
        input_quant_mode="SCALED",
    )


exact = x.astype(int) @ weights.astype(int)
print(f"{np.max(np.abs(product(tf.constant(x)) - exact) / exact):.2f}")
PY
export TF_CPP_MIN_LOG_LEVEL=3
run() { env/bin/python product.py "$@" 2> log || { cat log; exit 1; }; }
grep --quiet --extended-regexp 'avx512_vnni|avx_vnni' /proc/cpuinfo && vnni=$(run 64 127) || vnni="no VNNI here"
large=$(ONEDNN_MAX_CPU_ISA=AVX2 run 64 127)
small=$(ONEDNN_MAX_CPU_ISA=AVX2 run 32 64)
echo "relative errors: VNNI: $vnni; AVX2, weights up to 127: $large; AVX2, weights up to 64: $small"
[[ "$vnni" == 0.00 || "$vnni" == "no VNNI here" ]]
[[ "$large" == 0.1* ]]
[[ "$small" == 0.00 ]]
