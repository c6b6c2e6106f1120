"""Warm-up requests in the model. TF Serving runs them before it reports that the model is ready."""

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

FILE = pathlib.PurePath("assets.extra", "tf_serving_warmup_requests")  # TF Serving's name
# For exports without XLA. The first call optimizes the graph for all shapes, so one row suffices. A
# server that forms batches refuses to load a model with a request of more rows than a batch has.
SHAPES = [(1, 16), (1, 32)]


def batches(
    shapes: Iterable[tuple[int, int]], encode: Callable[[str], Sequence[int]]
) -> list[list[str]]:
    """Texts that form batches of given shapes (B, S).

    To save time, only the first sentence of a batch has the full length. S counts tokens with the
    end token, as the ids that `encode` gives for a text.
    """
    of_word = len(encode("e e")) - len(encode("e"))  # tokens
    return [
        [" ".join(["e"] * max(1, (length - 1) // of_word)), *["e"] * (rows - 1)]
        for rows, length in shapes
    ]


def write(saved_model: pathlib.Path, requests: Iterable[Sequence[str]]) -> None:
    """Writes requests, lists of texts, for each signature into a SavedModel.

    A signature with several inputs gets only the first two lists, because it is not compiled.
    """
    signatures = signature_inputs(saved_model)
    (saved_model / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(saved_model / FILE)) as file:
        for number, texts in enumerate(requests):
            for signature, names in signatures.items():
                if len(names) == 1 or number < 2:
                    file.write(_record(signature, dict.fromkeys(names, texts)))


def signature_inputs(saved_model: pathlib.Path) -> dict[str, list[str]]:
    """The input names of each signature, read from the file of the SavedModel."""
    content = (saved_model / "saved_model.pb").read_bytes()
    signatures = SavedModel.FromString(content).meta_graphs[0].signature_def
    return {
        name: sorted(signature.inputs)
        for name, signature in sorted(signatures.items())
        if not name.startswith("__")  # the signature of an initialization op
    }


def _record(signature: str, inputs: Mapping[str, Sequence[str]]) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature
    for name, texts in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(list(texts), tf.string))
    log = prediction_log_pb2.PredictLog(request=request)
    return prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString()
