"""The requirements of a SavedModel: its ops, whether it needs XLA, the oldest server that runs it.

Ops and their attributes are compared with `server_ops.tsv`. The dtypes that a server's kernels
support are not compared.
"""

import pathlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.framework import op_def_registry

from tf_transformer.export import server_ops
from tf_transformer.export.server_ops import Op, ServerOps, Version

COMPILED = "_XlaMustCompile"  # the attribute that tf.function(jit_compile=True) sets
# Attributes that do not change results; a server may ignore them.
WITHOUT_EFFECT = frozenset({"VarHandleOp.debug_name"})


@dataclass(frozen=True)
class Manifest:
    """The requirements of a SavedModel. All fields can be written as JSON.

    Attributes:
        ops: names of all ops, sorted.
        compiled_functions: names of functions that XLA must compile, sorted.
        lowest_server: the oldest listed TF Serving that runs the model, like "2.12".
        decided_by: ops and attributes that older servers lack, sorted. Empty if the oldest listed
            server runs the model.
        problems: reasons why no stock server runs the model; empty if a server runs it.
    """

    ops: tuple[str, ...]
    compiled_functions: tuple[str, ...]
    lowest_server: str
    decided_by: tuple[str, ...]
    problems: tuple[str, ...] = ()


def check(saved_model: pathlib.Path, jit_compile: bool) -> Manifest:
    """Reads the manifest of a SavedModel, and checks that a stock server runs the model.

    Args:
        saved_model: the folder of the SavedModel.
        jit_compile: whether functions may need XLA. A server needs
            --xla_cpu_compilation_enabled=true for them.

    Raises:
        RuntimeError: when no stock server runs the model; the message names ops and functions.
    """
    manifest = read(saved_model)
    problems = list(manifest.problems)
    if manifest.compiled_functions and not jit_compile:
        problems.append(
            "XLA must compile "
            + ", ".join(manifest.compiled_functions)
            + "; only a server with --xla_cpu_compilation_enabled=true does this"
        )
    if problems:
        raise RuntimeError(f"no stock TF Serving runs {saved_model}: " + "; ".join(problems) + ".")
    return manifest


def read(saved_model: pathlib.Path) -> Manifest:
    """Reads the manifest of any SavedModel from its file, without loading the model."""
    content = (pathlib.Path(saved_model) / "saved_model.pb").read_bytes()
    metas = SavedModel.FromString(content).meta_graphs
    listed = server_ops.read()
    nodes = [node for meta in metas for node in _nodes(meta)]
    needs: dict[str, Version] = {}
    for meta in metas:
        needs |= _versions(meta, listed)
    oldest = listed.servers[0].version
    lowest = max(needs.values(), default=oldest)
    return Manifest(
        ops=tuple(sorted({node.op for node in nodes})),
        compiled_functions=tuple(sorted(set().union(*map(_compiled, metas)))),
        lowest_server=server_ops.show_version(lowest),
        decided_by=tuple(sorted(n for n, v in needs.items() if v == lowest and lowest > oldest)),
        problems=tuple(problem for meta in metas for problem in _problems(meta, listed)),
    )


def _nodes(meta: MetaGraphDef) -> Iterator[NodeDef]:
    """All nodes of the graph and of its functions, without function calls."""
    functions = {function.signature.name for function in _functions(meta)}
    yield from (node for node in _all_nodes(meta) if node.op not in functions)


def _all_nodes(meta: MetaGraphDef) -> Iterator[NodeDef]:
    yield from meta.graph_def.node
    for function in _functions(meta):
        yield from function.node_def


def _functions(meta: MetaGraphDef) -> Iterable[FunctionDef]:
    return meta.graph_def.library.function


def _versions(meta: MetaGraphDef, listed: ServerOps) -> dict[str, Version]:
    """The first server that has each op and attribute in use and reads this GraphDef version."""
    needs = {}
    for node, op in _listed_nodes(meta, listed):
        needs[node.op] = op.since
        for name in _attributes_in_use(node):
            if name in op.attributes:
                needs[f"{node.op}.{name}"] = op.attributes[name]
    consumer = meta.graph_def.versions.min_consumer
    readers = [server.version for server in listed.servers if server.graph_def >= consumer]
    if readers:
        needs[f"GraphDef {consumer}"] = readers[0]
    return needs


def _listed_nodes(meta: MetaGraphDef, listed: ServerOps) -> Iterator[tuple[NodeDef, Op]]:
    """The nodes with a listed op, each with its op."""
    return ((node, listed.ops[node.op]) for node in _nodes(meta) if node.op in listed.ops)


def _attributes_in_use(node: NodeDef) -> list[str]:
    """The attributes whose values differ from their defaults.

    A server logs an error for an unsupported attribute and ignores it. This is correct only for a
    default value. TensorFlow 2 does not save defaults, so saved values are compared with the
    defaults of the installed TensorFlow. Names that start with an underscore belong to the runtime.
    """
    definition = op_def_registry.get(node.op)
    attributes = definition.attr if definition else ()
    defaults = {a.name: a.default_value for a in attributes if a.HasField("default_value")}
    return [
        name
        for name, value in node.attr.items()
        if not name.startswith("_")
        and f"{node.op}.{name}" not in WITHOUT_EFFECT
        and value != defaults.get(name)
    ]


def _problems(meta: MetaGraphDef, listed: ServerOps) -> Iterator[str]:
    ops = {node.op for node in _nodes(meta)}
    newest = server_ops.show_version(listed.servers[-1].version)
    if python := sorted(ops & server_ops.PYTHON_OPS):
        yield f"{', '.join(python)} calls Python, which a server does not have"
    xla = {name for name in ops if name.startswith("Xla")}
    if not_compiled := sorted(xla & {node.op for node in _outside_xla(meta)}):
        yield f"{', '.join(not_compiled)} runs only in a function that XLA compiles"
    if missing := sorted(ops - listed.ops.keys() - server_ops.PYTHON_OPS - set(not_compiled)):
        yield f"{', '.join(missing)} is linked by no server up to {newest}"
    attributes = {
        f"{node.op}.{name}"
        for node, op in _listed_nodes(meta, listed)
        for name in _attributes_in_use(node)
        if name not in op.attributes
    }
    if attributes:
        yield f"no server up to {newest} supports the attribute {', '.join(sorted(attributes))}"
    consumer = meta.graph_def.versions.min_consumer
    if consumer > listed.servers[-1].graph_def:
        yield f"the graph has version {consumer}, which no server up to {newest} reads"


def _compiled(meta: MetaGraphDef) -> set[str]:
    """The functions that XLA must compile: the function, or a call of it, has the attribute."""
    named = {f.signature.name for f in _functions(meta) if _has_attribute(f)}
    calls = filter(_has_attribute, _all_nodes(meta))
    return named.union(*(_called(node, meta) for node in calls))


def _has_attribute(holder: NodeDef | FunctionDef) -> bool:
    return COMPILED in holder.attr and holder.attr[COMPILED].b


def _called(node: NodeDef, meta: MetaGraphDef) -> set[str]:
    """The functions that a node may call: its op, or the values of its attributes."""
    called = {node.op} & {function.signature.name for function in _functions(meta)}
    for value in node.attr.values():
        called |= {f.name for f in (value.func, *value.list.func) if f.name}
    return called


def _outside_xla(meta: MetaGraphDef) -> Iterator[NodeDef]:
    """The nodes that run without XLA: a path to them has no compiled function."""
    functions = {function.signature.name: function for function in _functions(meta)}
    called = set().union(*(_called(node, meta) for node in _all_nodes(meta)))
    pending = [list(meta.graph_def.node)]
    # A function that no node calls may be called by name, like a signature.
    pending += [list(functions[name].node_def) for name in functions.keys() - called]
    visited = _compiled(meta)
    while pending:
        for node in pending.pop():
            yield node
            new = _called(node, meta) - visited
            visited |= new
            pending += [list(functions[name].node_def) for name in new if name in functions]
