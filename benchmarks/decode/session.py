"""This project's SavedModel in a session, with only the packages of a server (TF Serving)."""

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops

from benchmarks.decode.expected import read_expected, saved_model_path
from benchmarks.decode.workload import Cell
from benchmarks.harness.tasks import Setting, Task


def task(setting: Setting, cell: Cell, threads_per_operation: int = 0) -> Task:
    """Runs `serving_default` on raw strings.

    Args:
        setting: the shape and its folders.
        cell: what to translate.
        threads_per_operation: as the server's option tensorflow_intra_op_parallelism; 0: all.
    """
    sentences, check = read_expected(setting, cell)
    path = saved_model_path(setting, cell)
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads_per_operation)
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(path))
    signature = loaded.signature_def["serving_default"]
    fetches = {name: tensor.name for name, tensor in signature.outputs.items()}
    feed = {signature.inputs["text"].name: np.array([s.encode() for s in sentences], object)}
    return Task(
        cell.batch * cell.target_tokens,
        lambda: session.run(fetches, feed),
        lambda found: check(found["score"].tolist()),
    )
