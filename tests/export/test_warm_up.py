"""Warm-up requests: the content of the file, and the shapes of their batches."""

import pathlib
import re

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis import prediction_log_pb2

from tf_transformer.export import warm_up
from tf_transformer.inference.micro_batches import compiled_shapes, max_compiled_rows

SERVING = pathlib.Path(__file__).parents[2] / "export" / "serving"


def words(text: str) -> list[int]:
    """A tokenizer with one token per word, and the end token."""
    return [5] * len(text.split()) + [2]


def three_per_word(text: str) -> list[int]:
    """A tokenizer with three tokens per word, and the end token."""
    return [5] * 3 * len(text.split()) + [2]


def test_a_server_with_any_batch_size_loads_an_export_without_xla():
    """Requests go through the queue of batches, which refuses one with more rows than a batch."""
    assert {rows for rows, _ in warm_up.SHAPES} == {1}


@pytest.mark.parametrize("file", sorted(SERVING.glob("batching_*.txt")), ids=lambda file: file.stem)
def test_servers_with_the_files_of_this_project_load_every_export(file):
    (largest,) = re.findall(r"^max_batch_size \{ value: (\d+) \}", file.read_text("utf-8"), re.M)
    assert max(rows for rows, _ in compiled_shapes(200)) <= int(largest)


@pytest.mark.parametrize("encode", [words, three_per_word])
def test_each_batch_falls_into_its_bucket(encode):
    shapes = compiled_shapes(200)
    below = {length: max([0, *(n for _, n in shapes if n < length)]) for _, length in shapes}
    for (rows, length), texts in zip(shapes, warm_up.batches(shapes, encode), strict=True):
        assert len(texts) == rows
        assert min(len(encode(text)) for text in texts) > 1  # a row without text is not searched
        longest = max(len(encode(text)) for text in texts)
        assert below[length] < longest <= length
        assert rows <= max_compiled_rows(
            tf.constant(longest), 200
        )  # so it stays in one micro-batch


def test_every_signature_gets_the_requests_and_pairs_only_the_first_two(tmp_path):
    signatures = {"one": ["text"], "pair": ["source", "target"], "__init": []}
    model = SavedModel()
    meta = model.meta_graphs.add()
    for signature, inputs in signatures.items():
        for name in inputs or [""]:
            meta.signature_def[signature].inputs[name].name = name
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    warm_up.write(tmp_path, [["e e"], ["e", "", "é"], ["x"]])
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
    texts = [[b"e e"], [b"e", b"", "é".encode()], [b"x"]]
    assert [row[2] for row in found if row[:2] == ("one", "text")] == texts
    for name in ("source", "target"):
        assert [row[2] for row in found if row[:2] == ("pair", name)] == texts[:2]
    assert len(found) == 3 + 4
