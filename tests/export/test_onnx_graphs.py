"""Rewritten ONNX graphs, on graphs by hand; the oracle is onnxruntime on the graph before."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the extra onnx: pip install '.[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tf_transformer.export import onnx_weights  # noqa: E402
from tf_transformer.export.onnx_int8 import round_weights  # noqa: E402
from tf_transformer.export.onnx_loops import take_out_constants  # noqa: E402
from tf_transformer.export.run_in_onnx import IN_FLOAT32  # noqa: E402

FLOAT, BOOL, INT = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
SIZE = 72  # a square has more numbers than `onnx_int8.SMALLEST`


def values(*names, type=FLOAT, axes=2):
    return [helper.make_tensor_value_info(name, type, [None] * axes) for name in names]


def loop_body(name, nodes, carried, ended):
    """A body that carries values, and gives the condition on."""
    n, go = values(f"{name}_n", type=INT, axes=0), values(f"{name}_go", type=BOOL, axes=0)
    goes = values(f"{name}_goes", type=BOOL, axes=0)
    first = helper.make_node("Identity", [f"{name}_go"], [f"{name}_goes"])
    inputs, outputs = [*n, *go, *values(*carried)], [*goes, *values(*ended)]
    return helper.make_graph([first, *nodes], name, inputs, outputs)


def nested_loops():
    """Two loops, one in the other. Both carry x, which changes, and w, which does not."""
    node = helper.make_node
    inner = loop_body(
        "inner",
        [
            node("MatMul", ["x2", "w2"], ["y2"]),
            node("Tanh", ["y2"], ["z2"]),
            node("Identity", ["w2"], ["v2"]),
            node("Identity", ["v2"], ["u2"]),
        ],
        ["x2", "w2"],
        ["z2", "u2"],
    )
    outer = loop_body(
        "outer",
        [
            node("Loop", ["two", "", "x1", "w1"], ["z1", "u1"], body=inner),
            node("Identity", ["u1"], ["t1"]),
        ],
        ["w1", "x1"],
        ["t1", "z1"],
    )
    last = node("Add", ["x", "w"], ["y"])
    return model_of(
        [node("Loop", ["two", "", "w0", "x0"], ["w", "x"], body=outer), last],
        {"two": np.array(2), "w0": weights()},
        "x0",
    )


def weights(seed=0):
    return np.random.default_rng(seed).normal(size=(SIZE, SIZE)).astype("float32")


def model_of(nodes, initializers, inputs, type=FLOAT, axes=2):
    tensors = [numpy_helper.from_array(array, name) for name, array in initializers.items()]
    graph = helper.make_graph(
        nodes, "main", values(inputs, type=type), values("y", axes=axes), tensors
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def result(model, x):
    onnx.checker.check_model(model)
    return result_of(model.SerializeToString(), model.graph.input[0].name, x)


def result_of(file, feed, x):
    options = onnxruntime.SessionOptions()
    for name, value in IN_FLOAT32.items():
        options.add_session_config_entry(name, value)
    return onnxruntime.InferenceSession(file, options).run(None, {feed: x})[0]


def loops_in(graph):
    for node in graph.node:
        if node.op_type == "Loop":
            yield node
            yield from loops_in(node.attribute[0].g)


def test_loops_carry_only_what_changes_and_compute_the_same():
    model, x = nested_loops(), weights(1)
    before = result(model, x)
    take_out_constants(model.graph)
    assert [list(loop.input) for loop in loops_in(model.graph)] == [
        ["two", "", "x0"],
        ["two", "", "x1"],
    ]
    assert [len(loop.output) for loop in loops_in(model.graph)] == [1, 1]
    np.testing.assert_array_equal(result(model, x), before)


@pytest.mark.parametrize("carried", ["w1", "x1"])
def test_results_of_the_graph_keep_their_names(carried):
    """The result is a variable that does not change, or the only other one."""
    node = helper.make_node
    nodes = [node("Identity", ["w1"], ["w2"]), node("Tanh", ["x1"], ["x2"])]
    body = loop_body("body", nodes, ["w1", "x1"], ["w2", "x2"])
    names = {"w1": ["y", "unused"], "x1": ["unused", "y"]}[carried]
    loop = node("Loop", ["two", "", "x", "x"], names, body=body)
    model = model_of([loop], {"two": np.array(2)}, "x")
    before = result(model, weights())
    take_out_constants(model.graph)
    np.testing.assert_array_equal(result(model, weights()), before)


def test_a_loop_without_changes_stays():
    node = helper.make_node
    body = loop_body("body", [node("Identity", ["w1"], ["w2"])], ["w1"], ["w2"])
    model = model_of([node("Loop", ["two", "", "w"], ["y"], body=body)], {"two": np.array(2)}, "w")
    take_out_constants(model.graph)
    np.testing.assert_array_equal(result(model, weights()), weights())


def test_weights_of_products_are_rounded_by_half_a_step_at_most():
    """Also in loops. A column of zeros has no scale."""
    model = nested_loops()
    take_out_constants(model.graph)
    model.graph.node[-1].input[1] = "x"  # no node but the product reads w
    identity, size = np.eye(SIZE, dtype="float32"), model.ByteSize()
    (array,) = (x for x in model.graph.initializer if x.name == "w0")
    matrix = weights() / 10  # so that errors do not grow from product to product
    matrix[:, 5] = 0
    array.CopyFrom(numpy_helper.from_array(matrix, "w0"))
    before = result(model, identity)
    round_weights(model)
    assert model.ByteSize() < 0.35 * size
    after = result(model, identity)
    assert 0 < np.abs(after - before).max() < 0.02
    assert not after[:, 5].any()


def test_rows_of_tables_are_rounded_by_half_a_step_at_most():
    table, ids = weights(), np.array([[3, 0], [71, 3]])
    model = model_of([helper.make_node("Gather", ["w", "ids"], ["y"])], {"w": table}, "ids", INT, 3)
    round_weights(model)
    found, expected = result(model, ids), table[ids]
    half = np.abs(expected).max(axis=-1, keepdims=True) / 254
    assert (np.abs(found - expected) <= half * 1.001).all()
    assert {x.data_type for x in model.graph.initializer} == {TensorProto.INT8, FLOAT}


def test_small_matrices_stay_in_float32():
    small = weights()[:4]
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = model_of([product], {"w": small}, "x")
    before = model.SerializeToString()
    round_weights(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("rounds", [False, True])
def test_models_of_a_folder_share_their_weights(tmp_path, rounds):
    """In int8, the weights of the first model stand in its loops."""
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    models = {
        "loops.onnx": nested_loops(),
        "product.onnx": model_of([product], {"w": weights()}, "x"),
    }
    take_out_constants(models["loops.onnx"].graph)
    models["loops.onnx"].graph.node[-1].input[1] = "x"  # no node but the product reads w
    x = weights(1) / 10
    for model in models.values() if rounds else ():
        round_weights(model)
    expected = [result(model, x) for model in models.values()]
    size = sum(
        len(tensor.raw_data) for tensor in onnx_weights.weights_of(models["product.onnx"].graph)
    )
    onnx_weights.write(models, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {onnx_weights.FILE, *models}
    assert (tmp_path / onnx_weights.FILE).stat().st_size < 1.3 * size
    for name, values_before in zip(models, expected, strict=True):
        assert (tmp_path / name).stat().st_size < 4096
        input = models[name].graph.input[0].name
        np.testing.assert_array_equal(result_of(str(tmp_path / name), input, x), values_before)


def test_a_model_alone_has_its_weights(tmp_path):
    model = nested_loops()
    onnx_weights.write({"model.onnx": model}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == model.SerializeToString()
