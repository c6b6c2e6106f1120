"""Requests that TF Serving answers before it calls a model ready, kept inside the model."""

import pathlib
from collections.abc import Callable, Iterable, Sequence

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")  # TF Serving's own name
# Without XLA any shape will do: a first call allocates and optimises.
SHAPES = [(1, 16), (32, 32)]


def batches(
    shapes: Iterable[tuple[int, int]], encode: Callable[[str], Sequence[int]]
) -> list[list[str]]:
    """Texts that make batches of the given shapes.

    One sentence of each has the length and the others are short, so that none takes long.

    Args:
        shapes: (B, S), S in tokens with the end token.
        encode: gives a text's ids with the end token.
    """
    return [[_sentence(length, encode), *["e"] * (rows - 1)] for rows, length in shapes]


def _sentence(length: int, encode: Callable[[str], Sequence[int]]) -> str:
    """As many words as `length` tokens hold, the end token being one of them."""
    words = (length - 1) // (len(encode("e e")) - len(encode("e")))
    return " ".join(["e"] * max(1, words))


def write(saved_model: pathlib.Path, requests: Iterable[Sequence[str]]) -> None:
    """Puts requests to every signature into a SavedModel.

    Args:
        saved_model: its folder.
        requests: a list of texts each; `score` is asked for the first two, as their own
            translations, since it has no sizes of its own.
    """
    requests = list(requests)
    (saved_model / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(saved_model / FILE)) as file:
        for texts in requests:
            for signature in ("serving_default", "n_best"):
                file.write(_record(signature, text=texts))
        for texts in requests[:2]:
            file.write(_record("score", source=texts, target=texts))


def _record(signature: str, **inputs: Sequence[str]) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature
    for name, texts in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(list(texts), tf.string))
    log = prediction_log_pb2.PredictLog(request=request)
    return prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString()
