"""The requirements of a SavedModel: its ops, whether it needs XLA, the oldest server that runs it.

Ops and their attributes are compared with `server_ops.tsv`. The dtypes that a server's kernels
support are not compared.
"""

import itertools
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass

from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.framework import op_def_registry

from tf_transformer.export import server_ops
from tf_transformer.export.server_ops import ServerOps, Version

COMPILED = "_XlaMustCompile"  # the attribute that tf.function(jit_compile=True) sets
# Attributes that do not change results; a server may ignore them.
WITHOUT_EFFECT = frozenset({"VarHandleOp.debug_name"})


@dataclass(frozen=True)
class Manifest:
    """The requirements of a SavedModel. All fields can be written as JSON; names are sorted."""

    ops: tuple[str, ...]
    compiled_functions: tuple[str, ...]  # that XLA must compile
    lowest_server: str  # the oldest listed TF Serving that runs the model, like "2.12"
    decided_by: tuple[str, ...]  # ops and attributes that servers older than this one lack
    problems: tuple[str, ...] = ()  # why no stock server runs the model


def check(saved_model: pathlib.Path, jit_compile: bool) -> Manifest:
    """Reads the manifest of a SavedModel, and checks that a stock server runs the model.

    With `jit_compile`, functions may need XLA, so a server needs its option for XLA. When no stock
    server runs the model, a `RuntimeError` names ops and functions.
    """
    manifest = read(saved_model)
    problems = list(manifest.problems)
    if manifest.compiled_functions and not jit_compile:
        problems.append(
            f"XLA must compile {', '.join(manifest.compiled_functions)}; only a server with "
            "--xla_cpu_compilation_enabled=true does this"
        )
    if problems:
        raise RuntimeError(f"no stock TF Serving runs {saved_model}: " + "; ".join(problems) + ".")
    return manifest


def read(saved_model: pathlib.Path) -> Manifest:
    """Reads the manifest of any SavedModel from its file, without loading the model."""
    content = (pathlib.Path(saved_model) / "saved_model.pb").read_bytes()
    listed = server_ops.read()
    graphs = [_Graph(x.graph_def, listed) for x in SavedModel.FromString(content).meta_graphs]
    needs: dict[str, Version] = {}
    for graph in graphs:
        needs |= graph.versions()
    oldest = listed.servers[0].version
    lowest = max(needs.values(), default=oldest)
    return Manifest(
        ops=tuple(sorted({node.op for graph in graphs for node in graph.nodes})),
        compiled_functions=tuple(sorted({x for graph in graphs for x in graph.compiled})),
        lowest_server=server_ops.show_version(lowest),
        decided_by=tuple(sorted(n for n, v in needs.items() if v == lowest and lowest > oldest)),
        problems=tuple(problem for graph in graphs for problem in graph.problems()),
    )


class _Graph:
    """A graph with its functions, and the ops that servers have."""

    def __init__(self, graph: GraphDef, listed: ServerOps):
        self.graph = graph
        self.servers = listed.servers
        self.functions = {function.signature.name: function for function in graph.library.function}
        bodies = (function.node_def for function in graph.library.function)
        self.all_nodes = [*graph.node, *itertools.chain.from_iterable(bodies)]
        self.nodes = [x for x in self.all_nodes if x.op not in self.functions]  # without calls
        self.listed = [(x, listed.ops[x.op]) for x in self.nodes if x.op in listed.ops]
        # XLA must compile a function if the function, or a call of it, has the attribute.
        self.compiled = {name for name, body in self.functions.items() if _has_attribute(body)}
        for node in filter(_has_attribute, self.all_nodes):
            self.compiled |= self.called(node)

    def versions(self) -> dict[str, Version]:
        """The first server that has each op and attribute in use and reads this GraphDef."""
        needs = {}
        for node, op in self.listed:
            needs[node.op] = op.since
            for name in _attributes_in_use(node):
                if name in op.attributes:
                    needs[f"{node.op}.{name}"] = op.attributes[name]
        consumer = self.graph.versions.min_consumer
        readers = [server.version for server in self.servers if server.graph_def >= consumer]
        if readers:
            needs[f"GraphDef {consumer}"] = readers[0]
        return needs

    def problems(self) -> Iterator[str]:
        """The reasons why no stock server runs the graph."""
        ops = {node.op for node in self.nodes}
        newest = server_ops.show_version(self.servers[-1].version)
        if python := sorted(ops & server_ops.PYTHON_OPS):
            yield f"{', '.join(python)} calls Python, which a server does not have"
        outside = {node.op for node in self.outside_xla()}
        if not_compiled := sorted(x for x in ops & outside if x.startswith("Xla")):
            yield f"{', '.join(not_compiled)} runs only in a function that XLA compiles"
        known = {node.op for node, _ in self.listed}
        if missing := sorted(ops - known - server_ops.PYTHON_OPS - set(not_compiled)):
            yield f"{', '.join(missing)} is linked by no server up to {newest}"
        attributes = {
            f"{node.op}.{name}"
            for node, op in self.listed
            for name in _attributes_in_use(node)
            if name not in op.attributes
        }
        if attributes:
            yield f"no server up to {newest} supports the attribute {', '.join(sorted(attributes))}"
        consumer = self.graph.versions.min_consumer
        if consumer > self.servers[-1].graph_def:
            yield f"the graph has version {consumer}, which no server up to {newest} reads"

    def called(self, node: NodeDef) -> set[str]:
        """The functions that a node may call: its op, or the values of its attributes."""
        called = {node.op} & self.functions.keys()
        for value in node.attr.values():
            called |= {f.name for f in (value.func, *value.list.func) if f.name}
        return called

    def outside_xla(self) -> Iterator[NodeDef]:
        """The nodes that run without XLA: a path to them has no compiled function."""
        called = set().union(*map(self.called, self.all_nodes))
        pending = [list(self.graph.node)]
        # A function that no node calls may be called by name, like a signature.
        pending += [list(self.functions[name].node_def) for name in self.functions.keys() - called]
        visited = set(self.compiled)
        while pending:
            for node in pending.pop():
                yield node
                new = self.called(node) - visited
                visited |= new
                pending += [list(self.functions[x].node_def) for x in new & self.functions.keys()]


def _has_attribute(holder: NodeDef | FunctionDef) -> bool:
    return COMPILED in holder.attr and holder.attr[COMPILED].b


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
