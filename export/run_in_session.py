"""Runs a SavedModel the way TF Serving does: in a session, with no code but TensorFlow's.

    python export/run_in_session.py SAVED_MODEL < sentences

Prints a line of JSON for each line read: {"translation": ..., "score": ...}. Imports only
tensorflow and tensorflow_text, so what runs here runs on a server.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops

BATCH_SIZE = 32


def main(saved_model: str) -> None:
    """Translates stdin, BATCH_SIZE lines at a time."""
    lines = [line.removesuffix(b"\n") for line in sys.stdin.buffer]
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], saved_model)
        signature = meta_graph.signature_def["serving_default"]
        fetches = {name: tensor.name for name, tensor in signature.outputs.items()}
        for start in range(0, len(lines), BATCH_SIZE):
            batch = np.array(lines[start : start + BATCH_SIZE], object)
            found = session.run(fetches, {signature.inputs["text"].name: batch})
            for text, score in zip(found["translation"], found["score"], strict=True):
                row = {"translation": text.decode("utf-8", "replace"), "score": float(score)}
                print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1])
