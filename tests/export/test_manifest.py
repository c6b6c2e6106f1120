"""The manifest of SavedModels: of this project's exports, and of graphs that no server runs."""

import json
import pathlib
import re
from dataclasses import asdict

import keras
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.export import manifest, server_ops
from tf_transformer.inference.translator import Translator


@pytest.fixture(scope="module")
def compiled(run, tmp_path_factory):
    """An export whose search is compiled by XLA."""
    path = tmp_path_factory.mktemp("manifest") / "compiled"
    Translator.from_run(run).save(path, jit_compile=True)
    return path


def save(function, path: pathlib.Path, **options) -> pathlib.Path:
    """A SavedModel of a function of one vector."""
    module = tf.Module()
    spec = [tf.TensorSpec((4,), tf.float32)]
    module.function = tf.function(function, input_signature=spec, autograph=False, **options)
    tf.saved_model.save(module, str(path))
    return path


def edit(source: pathlib.Path, target: pathlib.Path, change) -> pathlib.Path:
    """A copy of a SavedModel's graph, with `change` applied to its first MetaGraphDef."""
    proto = saved_model_pb2.SavedModel.FromString((source / "saved_model.pb").read_bytes())
    change(proto.meta_graphs[0])
    target.mkdir()
    (target / "saved_model.pb").write_bytes(proto.SerializeToString())
    return target


def nodes(meta, op: str) -> list:
    functions = meta.graph_def.library.function
    every = [*meta.graph_def.node, *(node for f in functions for node in f.node_def)]
    return [node for node in every if node.op == op]


def test_an_export_runs_on_the_oldest_listed_server(served):
    found = manifest.check(served, jit_compile=False)
    # Oracle: TensorFlow 2.12.1 with tensorflow-text 2.12.1 ran such an export in a session.
    assert found.lowest_server == "2.12"
    assert found.decided_by == found.compiled_functions == found.problems == ()
    assert {"SentencepieceOp", "While", "MatMul"} <= set(found.ops)
    assert not [name for name in found.ops if name.startswith("Xla")]


def test_no_op_of_an_export_is_newer_than_the_lowest_server(served):
    found = manifest.read(served)
    listed = server_ops.read().ops
    lowest = server_ops.parse_version(found.lowest_server)
    assert max(listed[name].since for name in found.ops) <= lowest


def test_ops_are_those_in_the_text_form_of_the_graph(served):
    proto = saved_model_pb2.SavedModel.FromString((served / "saved_model.pb").read_bytes())
    graph = proto.meta_graphs[0].graph_def
    functions = {function.signature.name for function in graph.library.function}
    shown = set(re.findall(r'^\s*op: "(.*)"$', str(graph), re.MULTILINE)) - functions
    assert shown == set(manifest.read(served).ops)


def test_a_manifest_can_be_written_as_json(served):
    fields = json.loads(json.dumps(asdict(manifest.read(served))))
    assert fields["lowest_server"] == "2.12"
    assert fields["ops"] == list(manifest.read(served).ops)


def test_a_compiled_export_is_refused_without_jit_compile(compiled):
    message = (
        r"XLA must compile __inference_\w+; only a server with --xla_cpu_compilation_enabled=true"
    )
    with pytest.raises(RuntimeError, match=message):
        manifest.check(compiled, jit_compile=False)
    found = manifest.check(compiled, jit_compile=True)
    assert len(found.compiled_functions) == 1
    assert "XlaDynamicUpdateSlice" in found.ops


@pytest.mark.slow
def test_a_call_with_the_compile_attribute_counts_as_compiled(served, tmp_path):
    def compile_a_call(meta):
        call = nodes(meta, "StatefulPartitionedCall")[0]
        call.attr[manifest.COMPILED].b = True

    path = edit(served, tmp_path / "edited", compile_a_call)
    assert len(manifest.read(path).compiled_functions) == 1


def test_python_functions_are_refused(tmp_path):
    path = save(lambda x: tf.py_function(lambda y: y, [x], tf.float32), tmp_path / "python")
    with pytest.raises(RuntimeError, match="EagerPyFunc calls Python, which a server does not"):
        manifest.check(path, jit_compile=True)


def test_xla_ops_are_refused_outside_compiled_functions(tmp_path):
    def update(x):
        return keras.ops.slice_update(x, [1], x[:2])

    outside = save(update, tmp_path / "outside")
    message = "XlaDynamicUpdateSlice runs only in a function that XLA compiles"
    with pytest.raises(RuntimeError, match=message):
        manifest.check(outside, jit_compile=True)
    inside = save(update, tmp_path / "inside", jit_compile=True)
    assert "XlaDynamicUpdateSlice" in manifest.check(inside, jit_compile=True).ops


def test_an_op_that_no_server_links_is_refused(served, tmp_path):
    def rename(meta):
        nodes(meta, "SentencepieceOp")[0].op = "TFText>Newer"

    path = edit(served, tmp_path / "edited", rename)
    newest = server_ops.show_version(server_ops.read().servers[-1].version)
    with pytest.raises(RuntimeError, match=f"TFText>Newer is linked by no server up to {newest}"):
        manifest.check(path, jit_compile=False)


def test_a_newer_op_raises_the_lowest_server(served, tmp_path):
    def rename(meta):
        node = nodes(meta, "SentencepieceOp")[0]
        node.op = "TFText>Utf8Binarize"
        node.attr.clear()

    found = manifest.check(edit(served, tmp_path / "edited", rename), jit_compile=False)
    # In ops_lib of tensorflow-text 2.20.0, which server 2.20 links, and not of 2.12.1.
    assert (found.lowest_server, found.decided_by) == ("2.20", ("TFText>Utf8Binarize",))


def test_a_newer_attribute_raises_the_lowest_server(served, tmp_path):
    def set_type(meta):
        nodes(meta, "TopKV2")[0].attr["index_type"].type = tf.int16.as_datatype_enum

    found = manifest.check(edit(served, tmp_path / "edited", set_type), jit_compile=False)
    # Added by TensorFlow 2.13; before, TopKV2's indices were always int32.
    assert (found.lowest_server, found.decided_by) == ("2.13", ("TopKV2.index_type",))


def test_an_attribute_at_its_default_does_not_count(served, tmp_path):
    def set_default(meta):
        nodes(meta, "TopKV2")[0].attr["index_type"].type = tf.int32.as_datatype_enum

    found = manifest.check(edit(served, tmp_path / "edited", set_default), jit_compile=False)
    assert found.lowest_server == "2.12"


def test_an_attribute_that_no_server_supports_is_refused(served, tmp_path):
    def add_attribute(meta):
        nodes(meta, "MatMul")[0].attr["grad_c"].b = True

    path = edit(served, tmp_path / "edited", add_attribute)
    with pytest.raises(RuntimeError, match=r"up to 2.20 supports the attribute MatMul.grad_c"):
        manifest.check(path, jit_compile=False)


def test_a_newer_graph_version_needs_a_newer_server(served, tmp_path):
    def set_consumer(version):
        return lambda meta: setattr(meta.graph_def.versions, "min_consumer", version)

    servers = server_ops.read().servers
    newer = edit(served, tmp_path / "newer", set_consumer(servers[0].graph_def + 1))
    assert manifest.check(newer, jit_compile=False).lowest_server == "2.13"
    none = edit(served, tmp_path / "none", set_consumer(servers[-1].graph_def + 1))
    with pytest.raises(RuntimeError, match=r"the graph has version \d+, which no server up to"):
        manifest.check(none, jit_compile=False)
