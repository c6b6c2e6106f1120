"""Runs requests through a SavedModel in a session, as load_saved_model.cc does in C++.

    PYTHONPATH=. python tests/export/run_requests.py SAVED_MODEL REQUESTS ANSWERS

load_saved_model.cc describes both files.
"""

import sys

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from tf_transformer.export.run_in_session import SavedModel


def main(saved_model: str, requests: str, answers: str) -> None:
    model = SavedModel(saved_model)
    with tf.io.TFRecordWriter(answers) as writer:
        for record in tf.data.TFRecordDataset(requests).as_numpy_iterator():
            request = attr_value_pb2.NameAttrList.FromString(record)
            inputs = {name: value.tensor.string_val for name, value in request.attr.items()}
            answer = attr_value_pb2.NameAttrList(name=request.name)
            for name, value in model(request.name, inputs).items():
                answer.attr[name].tensor.CopyFrom(tf.make_tensor_proto(value))
            writer.write(answer.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
