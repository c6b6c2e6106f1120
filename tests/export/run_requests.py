"""Runs requests through a SavedModel in a session, as load_saved_model.cc does in C++.

    python run_requests.py SAVED_MODEL REQUESTS ANSWERS

Both files are described in load_saved_model.cc. Imports nothing but tensorflow and
tensorflow_text.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops
from tensorflow.core.framework import attr_value_pb2


def main(saved_model: str, requests: str, answers: str) -> None:
    with tf.Graph().as_default() as graph:
        records = tf.compat.v1.io.tf_record_iterator(requests)
        messages = list(map(attr_value_pb2.NameAttrList.FromString, records))
    with tf.compat.v1.Session(graph=graph) as session, tf.io.TFRecordWriter(answers) as writer:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], saved_model)
        for message in messages:
            signature = loaded.signature_def[message.name]
            feeds = {
                signature.inputs[name].name: tf.make_ndarray(value.tensor)
                for name, value in message.attr.items()
            }
            fetches = {name: tensor.name for name, tensor in signature.outputs.items()}
            answer = attr_value_pb2.NameAttrList(name=message.name)
            for name, value in session.run(fetches, feeds).items():
                answer.attr[name].tensor.CopyFrom(tf.make_tensor_proto(value))
            writer.write(answer.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
