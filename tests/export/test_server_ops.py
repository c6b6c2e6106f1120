"""The list of ops that servers link, compared with the installed TensorFlow."""

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers its ops
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_registry

from tf_transformer.export import server_ops
from tf_transformer.export.server_ops import CORE, TEXT, XLA, Op, Server, ServerOps

OLD, NEW = (2, 12), (2, 13)


def op_def(name: str, attributes: str = "", deprecated: bool = False) -> op_def_pb2.OpDef:
    op = op_def_pb2.OpDef(name=name)
    for attribute in attributes.split():
        op.attr.add(name=attribute)
    if deprecated:
        op.deprecation.version = 1
    return op


def test_every_op_listed_is_registered_with_its_attributes():
    for name, op in server_ops.read().ops.items():
        definition = op_def_registry.get(name)
        assert definition is not None, name
        assert set(op.attributes) <= {attribute.name for attribute in definition.attr}, name


def test_servers_are_in_order_and_known_ops_have_their_source():
    servers, ops = server_ops.read()
    versions = [server.version for server in servers]
    assert versions == sorted(set(versions))
    assert {op.since for op in ops.values()} <= set(versions)
    assert (ops["SentencepieceOp"].source, ops["SentencepieceOp"].since) == (TEXT, OLD)
    assert ops["XlaDynamicUpdateSlice"].source == XLA
    assert ops["MatMul"].source == CORE
    assert not server_ops.PYTHON_OPS & ops.keys()
    assert servers[-1].graph_def <= tf.version.GRAPH_DEF_VERSION


def test_the_list_is_read_and_written_without_change(tmp_path):
    file = tmp_path / "ops.tsv"
    server_ops.write(server_ops.read(), file)
    assert file.read_text("utf-8") == server_ops.FILE.read_text("utf-8")


def test_only_ops_that_a_server_can_run_are_linked():
    ops = [
        op_def("Good", "T"),
        op_def("Text"),
        op_def("XlaGood"),
        op_def("NoKernel"),
        op_def("PyFunc"),
        op_def("_Internal"),
        op_def("Deprecated", deprecated=True),
        op_def("OfTests"),
    ]
    on_cpu = {op.name for op in ops} - {"NoKernel"}
    assert server_ops.linked(ops, {"Text"}, on_cpu, {"OfTests"}) == {
        "Good": (CORE, ["T"]),
        "Text": (TEXT, []),
        "XlaGood": (XLA, []),
    }


def test_a_newer_server_adds_and_removes_ops():
    old = {"Op": (CORE, ["T"]), "Gone": (CORE, []), "Text": (TEXT, [])}
    listed = server_ops.add(ServerOps([], {}), Server(OLD, "2.12.1", "2.12.1", 5), old)
    new = {"Op": (CORE, ["T", "new"]), "New": (CORE, ["T"])}
    servers, ops = server_ops.add(listed, Server(NEW, "2.13.1", "-", 6), new)
    assert [server.version for server in servers] == [OLD, NEW]
    assert ops == {
        "Op": Op(CORE, OLD, {"T": OLD, "new": NEW}),
        "New": Op(CORE, NEW, {"T": NEW}),
        "Text": Op(TEXT, OLD, {}),  # a dash: the same tensorflow-text as the previous server
    }
