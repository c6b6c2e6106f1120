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

    One sentence of each has the length and the others are empty, so that none takes long.

    Args:
        shapes: (B, S), S in tokens with the end token.
        encode: gives a text's ids with the end token.
    """
    return [[_sentence(length, encode), *[""] * (rows - 1)] for rows, length in shapes]


def _sentence(length: int, encode: Callable[[str], Sequence[int]]) -> str:
    """As many words as `length` tokens hold, the end token being one of them."""
    words = (length - 1) // (len(encode("e e")) - len(encode("e")))
    return " ".join(["e"] * max(1, words))


def write(saved_model: pathlib.Path, requests: Iterable[Sequence[str]]) -> None:
    """Puts requests to the signature `serving_default` into a SavedModel.

    Args:
        saved_model: its folder.
        requests: a list of texts each.
    """
    (saved_model / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(saved_model / FILE)) as file:
        for texts in requests:
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = "serving_default"
            request.inputs["text"].CopyFrom(tf.make_tensor_proto(list(texts), tf.string))
            log = prediction_log_pb2.PredictLog(request=request)
            file.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())
