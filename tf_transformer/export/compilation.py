"""Measures whether an export is faster with XLA on this machine.

Each form of the export, with XLA and without, is timed in a new process. The program of this
process is this module.
"""

import json
import sys
import time
from dataclasses import asdict
from typing import Any

import tensorflow as tf

from tf_transformer.config import DType
from tf_transformer.data.examples import spread
from tf_transformer.errors import InputError
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.programs import run_program
from tf_transformer.run.run import Run
from tf_transformer.tasks import load_predictor

SINGLE_TEXTS = 8
LONGEST_TRIAL = 600  # seconds; XLA compiles a search for each size


def is_faster_compiled(run: Run, dtype: DType) -> bool:
    """Whether the export is faster with XLA for the samples of the run.

    Prints both times. A time is the sum over `SINGLE_TEXTS` requests with one text each, and one
    request with all samples.
    """
    texts = run.folder.load_samples()
    work = {
        "run_dir": str(run.folder.path),
        "decode_options": asdict(run.config.decode) | {"task_options": asdict(run.config.task)},
        **{"texts": texts, "dtype": dtype},
    }
    plain, compiled = (_measure(work | {"jit_compile": is_on}) for is_on in (False, True))
    print(
        f"{SINGLE_TEXTS} single texts and {len(texts)} together: {plain:.3g} s, "
        f"{compiled:.3g} s with XLA."
    )
    return compiled < plain


def _measure(work: dict[str, Any]) -> float:
    """Calls `seconds` in a new process."""
    try:
        return run_program(__name__, work, LONGEST_TRIAL)
    except RuntimeError as error:
        raise InputError(
            f"--jit_compile auto cannot measure: {error}. Give --jit_compile true or false."
        ) from error


def seconds(
    run_dir: str, texts: list[str], dtype: DType, decode_options: dict[str, Any], jit_compile: bool
) -> float:
    """Seconds of all requests, after a first call of each request."""
    predictor: Any = load_predictor(Run.load(run_dir, **decode_options), dtype)
    graph = predictor.graph(jit_compile)
    function, _ = graph.endpoints()["serving_default"]
    predict = tf.function(function, [tf.TensorSpec((None,), tf.string)], autograph=False)
    requests = [*([text] for text in spread(texts, SINGLE_TEXTS)), texts]
    for request in requests:
        predict(request)
    start = time.perf_counter()
    for request in requests:
        predict(request)["score"].numpy()
    return time.perf_counter() - start


if __name__ == "__main__":
    keep_freed_memory()
    print(json.dumps(seconds(**json.load(sys.stdin))))
