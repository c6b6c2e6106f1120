#!/usr/bin/env bash
# TensorFlow: tf.strings.reduce_join of a ragged tensor, and unsorted_segment_join, lose the separator "\0".
#
# Guess:  a NUL, which no text has, can separate strings that a graph joins, and tf.strings.split divides them again.
# Seen:   tf.strings.join, and reduce_join of a dense tensor, join "a" and "b" to "a\0b". reduce_join of these strings
#         in a ragged tensor gives "ab", without an error, and so does unsorted_segment_join. Other separators stay.
# With:   tensorflow 2.21.0, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: sentences, words or tokens of a batch run together in the graph of a model that reads text. Put the NUL into
#         the strings, and join them by "".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet tensorflow==2.21.0
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - 2> log <<'PY' || { cat log; exit 1; }
import tensorflow as tf

rows = [["a", "b"], ["c", "d"]]
segments = [[0, 0], [1, 1]]


def joined(separator):
    flat, segment_of = (tf.reshape(tf.constant(x), [-1]) for x in (rows, segments))
    return {
        "join": tf.strings.join(list(zip(*rows)), separator),
        "reduce_join": tf.strings.reduce_join(tf.constant(rows), axis=1, separator=separator),
        "reduce_join of ragged": tf.strings.reduce_join(tf.ragged.constant(rows), axis=1, separator=separator),
        "unsorted_segment_join": tf.strings.unsorted_segment_join(flat, segment_of, 2, separator),
    }


assert all(strings.numpy().tolist() == [b"a|b", b"c|d"] for strings in joined("|").values())
by_nul = {name: strings.numpy().tolist() for name, strings in joined("\0").items()}
assert by_nul["join"] == by_nul["reduce_join"] == [b"a\0b", b"c\0d"]
for name in ("reduce_join of ragged", "unsorted_segment_join"):
    assert by_nul[name] == [b"ab", b"cd"], by_nul
    print(f"{name}: the NUL is lost, {by_nul[name]}")
PY
