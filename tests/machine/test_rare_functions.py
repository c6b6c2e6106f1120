"""Which functions of a SavedModel TensorFlow prepares when they run."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.inference.text_graph import NUMBERS, Traced
from tf_transformer.machine.rare_functions import mark_callees


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
    mark_callees(folder)
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
