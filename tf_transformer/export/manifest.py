"""What a server needs to run a SavedModel: its ops, XLA, the lowest version.

Ops and attributes are looked at, not for which types of tensors a server's kernels are.
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

COMPILED = "_XlaMustCompile"  # the attribute that tf.function(jit_compile=True) leaves
# Attributes that a server may do without, because nothing that is computed depends on them.
ONLY_NAMES = frozenset({"VarHandleOp.debug_name"})


@dataclass(frozen=True)
class Manifest:
    """What a SavedModel holds, as far as a server cares. All fields can be written as JSON.

    Args:
        ops: names of all ops, sorted.
        compiled_functions: functions that XLA must compile, sorted.
        lowest_server: the oldest TF Serving that runs it, as in "2.12". Older ones than the list of
            ops knows are not looked at.
        decided_by: ops and attributes that older servers do not have, sorted; empty
            where the oldest server of the list will do.
        problems: why no server runs it, or only one that was told to compile; mostly empty.
    """

    ops: tuple[str, ...]
    compiled_functions: tuple[str, ...]
    lowest_server: str
    decided_by: tuple[str, ...]
    problems: tuple[str, ...] = ()


def check(saved_model: pathlib.Path, jit_compile: bool) -> Manifest:
    """The manifest of a SavedModel that a stock server runs.

    Args:
        saved_model: its folder.
        jit_compile: whether functions may ask for XLA, which a server takes only when started
            with --xla_cpu_compilation_enabled=true.

    Raises:
        RuntimeError: when no stock server runs it, naming ops and functions.
    """
    manifest = read(saved_model)
    problems = list(manifest.problems)
    if manifest.compiled_functions and not jit_compile:
        problems.append(
            "XLA must compile "
            + ", ".join(manifest.compiled_functions)
            + "; a server refuses that "
            "unless it was started with --xla_cpu_compilation_enabled=true"
        )
    if problems:
        raise RuntimeError(f"no stock TF Serving runs {saved_model}: " + "; ".join(problems) + ".")
    return manifest


def read(saved_model: pathlib.Path) -> Manifest:
    """The manifest of any SavedModel, read from its file alone: nothing is loaded."""
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
    """All nodes, of the graph and of its functions; calls of functions are not among them."""
    functions = {function.signature.name for function in _functions(meta)}
    yield from (node for node in meta.graph_def.node if node.op not in functions)
    for function in _functions(meta):
        yield from (node for node in function.node_def if node.op not in functions)


def _functions(meta: MetaGraphDef) -> Iterable[FunctionDef]:
    return meta.graph_def.library.function


def _versions(meta: MetaGraphDef, listed: ServerOps) -> dict[str, Version]:
    """The first server with each op and each attribute in use, and that can read the graph."""
    needs = {}
    for node, op in _known(meta, listed):
        needs[node.op] = op.since
        for name in _given(node):
            if name in op.attributes:
                needs[f"{node.op}.{name}"] = op.attributes[name]
    consumer = meta.graph_def.versions.min_consumer
    readers = [server.version for server in listed.servers if server.graph_def >= consumer]
    if readers:
        needs[f"GraphDef {consumer}"] = readers[0]
    return needs


def _known(meta: MetaGraphDef, listed: ServerOps) -> Iterator[tuple[NodeDef, Op]]:
    return ((node, listed.ops[node.op]) for node in _nodes(meta) if node.op in listed.ops)


def _given(node: NodeDef) -> list[str]:
    """Attributes with a value that says something.

    A server that does not know an attribute logs an error and passes over it, which is right only
    if it is at its default. SavedModels of TensorFlow 2 leave defaults out; others were written
    by the TensorFlow that is installed, whose defaults are compared. Names with an underscore
    are no op's, but notes of the runtime.
    """
    definition = op_def_registry.get(node.op)
    attributes = definition.attr if definition else ()
    defaults = {a.name: a.default_value for a in attributes if a.HasField("default_value")}
    return [
        name
        for name, value in node.attr.items()
        if not name.startswith("_")
        and f"{node.op}.{name}" not in ONLY_NAMES
        and value != defaults.get(name)
    ]


def _problems(meta: MetaGraphDef, listed: ServerOps) -> Iterator[str]:
    ops = {node.op for node in _nodes(meta)}
    newest = server_ops.show_version(listed.servers[-1].version)
    if python := sorted(ops & server_ops.PYTHON_OPS):
        yield f"{', '.join(python)} calls Python, which a server does not have"
    xla = {name for name in ops if name.startswith("Xla")}
    if loose := sorted(xla & {node.op for node in _outside_xla(meta)}):
        yield f"{', '.join(loose)} runs only in a function that XLA compiles"
    if unknown := sorted(ops - listed.ops.keys() - server_ops.PYTHON_OPS - set(loose)):
        yield f"{', '.join(unknown)} is linked by no server up to {newest}"
    attributes = {
        f"{node.op}.{name}"
        for node, op in _known(meta, listed)
        for name in _given(node)
        if name not in op.attributes
    }
    if attributes:
        yield f"the attribute {', '.join(sorted(attributes))} is known to no server up to {newest}"
    consumer = meta.graph_def.versions.min_consumer
    if consumer > listed.servers[-1].graph_def:
        yield f"the graph has version {consumer}, which no server up to {newest} reads"


def _compiled(meta: MetaGraphDef) -> set[str]:
    """Functions that XLA must compile: that say so, or that a call which says so calls."""
    named = {f.signature.name for f in _functions(meta) if _says_compile(f)}
    calls = filter(_says_compile, _all_nodes(meta))
    return named.union(*(_called(node, meta) for node in calls))


def _says_compile(holder: NodeDef | FunctionDef) -> bool:
    return COMPILED in holder.attr and holder.attr[COMPILED].b


def _all_nodes(meta: MetaGraphDef) -> Iterator[NodeDef]:
    yield from meta.graph_def.node
    for function in _functions(meta):
        yield from function.node_def


def _called(node: NodeDef, meta: MetaGraphDef) -> set[str]:
    """Functions that a node may call: its op, or an attribute's value."""
    called = {node.op} & {function.signature.name for function in _functions(meta)}
    for value in node.attr.values():
        called |= {f.name for f in (value.func, *value.list.func) if f.name}
    return called


def _outside_xla(meta: MetaGraphDef) -> Iterator[NodeDef]:
    """Nodes that run without XLA: those reached without going through a compiled function."""
    functions = {function.signature.name: function for function in _functions(meta)}
    called = set().union(*(_called(node, meta) for node in _all_nodes(meta)))
    waiting = [list(meta.graph_def.node)]
    # What nothing calls, the loader may still call by name.
    waiting += [list(functions[name].node_def) for name in functions.keys() - called]
    seen = _compiled(meta)
    while waiting:
        for node in waiting.pop():
            yield node
            new = _called(node, meta) - seen
            seen |= new
            waiting += [list(functions[name].node_def) for name in new if name in functions]
