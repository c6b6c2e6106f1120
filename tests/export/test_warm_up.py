"""Warm-up requests: what TF Serving will read, and what shapes they make."""

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tf_transformer.export import warm_up
from tf_transformer.export.micro_batches import compiled_shapes, most_compiled_rows


def words(text: str) -> list[int]:
    """A tokenizer with a token a word, and the end token."""
    return [5] * len(text.split()) + [2]


def bytes_and_blanks(text: str) -> list[int]:
    """A tokenizer with three tokens a word."""
    return [5] * 3 * len(text.split()) + [2]


@pytest.mark.parametrize("encode", [words, bytes_and_blanks])
def test_batches_fall_into_the_buckets_they_are_for(encode):
    shapes = compiled_shapes(200)
    below = {length: max([0, *(n for _, n in shapes if n < length)]) for _, length in shapes}
    for (rows, length), texts in zip(shapes, warm_up.batches(shapes, encode), strict=True):
        assert len(texts) == rows
        assert min(len(encode(text)) for text in texts) > 1  # a row without text is left out
        longest = max(len(encode(text)) for text in texts)
        assert below[length] < longest <= length
        assert rows <= most_compiled_rows(tf.constant(longest), 200)  # so it is one piece


def test_a_written_file_holds_the_requests(tmp_path):
    batches = [["e e"], ["e", "", "é"]]
    warm_up.write(tmp_path, batches)
    records = tf.data.TFRecordDataset(str(tmp_path / warm_up.FILE)).as_numpy_iterator()
    requests = [
        prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        for record in records
    ]
    found = [
        (request.model_spec.signature_name, name, tf.make_ndarray(request.inputs[name]).tolist())
        for request in requests
        for name in sorted(request.inputs)
    ]
    first, second = [b"e e"], [b"e", b"", "é".encode()]
    assert found == [
        ("serving_default", "text", first),
        ("n_best", "text", first),
        ("serving_default", "text", second),
        ("n_best", "text", second),
        *(("score", name, first) for name in ("source", "target")),
        *(("score", name, second) for name in ("source", "target")),
    ]
