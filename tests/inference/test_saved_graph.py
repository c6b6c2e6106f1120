"""The graph of a SavedModel after it is rewritten."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.inference.saved_graph import rewrite
from tf_transformer.inference.text_graph import NUMBERS, Traced


def loop_of(limit: int):
    """A function with a loop, whose body is a function of its own in the graph."""
    return lambda x: tf.while_loop(lambda x: x[0] < limit, lambda x: (x * 2,), (x,))[0]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    rare, common = Traced(loop_of(1000), NUMBERS, rare=True), Traced(loop_of(10), NUMBERS)

    @tf.function(input_signature=[NUMBERS])
    def double(x):
        return tf.cond(x[0] > 5, lambda: rare(x), lambda: common(x))

    folder = tmp_path_factory.mktemp("model")
    module = tf.Module()
    module.double = double
    tf.saved_model.save(module, str(folder))
    rewrite(folder)
    assert tf.saved_model.load(str(folder)).double(tf.constant([7])).numpy() == [1792]
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    return model.meta_graphs[0].graph_def


def test_rare_functions_and_their_loops_are_marked_and_no_others(graph):
    def limits(is_marked: bool) -> set[int]:
        return {
            node.attr["value"].tensor.int_val[0]
            for function in graph.library.function
            if function.attr["_tf_data_function"].b == is_marked
            for node in function.node_def
            if node.op == "Const" and node.attr["value"].tensor.int_val[:1] in ([10], [1000])
        }

    assert (limits(True), limits(False)) == ({1000}, {10})


def session_answers(folder, x: list[int]) -> dict[str, list[int]]:
    """The outputs of the signature `serving_default`, in a session."""
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def
        ends = signature["serving_default"]
        fetches = {name: tensor.name for name, tensor in ends.outputs.items()}
        (name,) = (tensor.name for tensor in ends.inputs.values())
        answers = session.run(fetches, {name: x})
    return {name: value.tolist() for name, value in answers.items()}


@pytest.fixture(scope="module")
def with_constants(tmp_path_factory):
    """A SavedModel with equal constants: as inputs, as outputs and after control inputs."""

    @tf.function(input_signature=[NUMBERS])
    def function(x):
        with tf.control_dependencies([tf.debugging.assert_less(x, 100)]):
            checked = x + tf.constant(3) * tf.constant(3)
        same_bits = tf.bitcast(tf.constant(3.0), tf.int32) + tf.constant(1077936128)
        return {
            "sum": checked + same_bits,
            "three": tf.constant(3),
            "three_again": tf.constant(3),
            "loop": tf.while_loop(lambda x: x[0] < 50, lambda x: (x * 3 + 3,), (x,))[0],
        }

    folder = tmp_path_factory.mktemp("constants")
    module = tf.Module()
    tf.saved_model.save(module, str(folder), {"serving_default": function})
    return folder, {name: np.asarray(value).tolist() for name, value in function([7]).items()}


def test_equal_constants_are_shared_and_answers_stay(with_constants):
    folder, expected = with_constants
    before = session_answers(folder, [7])
    rewrite(folder)
    assert session_answers(folder, [7]) == before == expected
    loaded = tf.saved_model.load(str(folder)).signatures["serving_default"]
    assert {name: value.numpy().tolist() for name, value in loaded(tf.constant([7])).items()} == (
        expected
    )
    model = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    for function in model.meta_graphs[0].graph_def.library.function:
        constants = [
            node.attr["value"].SerializeToString(deterministic=True)
            for node in function.node_def
            if node.op == "Const" and not node.input
        ]
        assert len(constants) == len(set(constants))
