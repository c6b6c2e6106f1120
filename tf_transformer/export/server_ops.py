"""The ops that a stock TF Serving links, and the first server that links them: server_ops.tsv.

    python -m export.server_ops

adds the server of the TensorFlow (and, where installed, the tensorflow-text) that runs it. Start
without the file, and run it under each server's TensorFlow, the oldest first.
"""

import importlib.metadata
import pathlib
import re
from collections.abc import Container, Iterable
from typing import NamedTuple

Version = tuple[int, int]
FILE = pathlib.Path(__file__).with_name("server_ops.tsv")
CORE, TEXT, XLA = "core", "text", "xla"
# Registered with a kernel for the CPU, but that calls the Python of the process.
PYTHON_OPS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
HEADER = """\
# Ops that a stock TF Serving links, each with the first server looked at that has it.
#
# Made by export/server_ops.py, whose docstring says how to make it anew, from the ops and kernels
# registered in the packages that lines with @ name: server, tensorflow, tensorflow-text (a dash:
# that of the server before) and version of GraphDef. Which tensorflow-text a server links is in
# tensorflow_serving/workspace.bzl of that server's release, target tensorflow_text:ops_lib.
# What the first server here has, older ones may have, too.
#
# op, server, where from, attributes; a later server with @ where it brought the attribute.
# core: linked by all servers. text: tensorflow-text's. xla: needs XLA, so that it can run
# only inside functions that XLA compiles. Left out: what no CPU has a kernel for, deprecated and
# internal ops, Python's, those for TensorFlow's own tests, and those a later server has no more.
"""


class Op(NamedTuple):
    """What is known of an op, in versions of the server."""

    source: str  # CORE, TEXT or XLA
    since: Version
    attributes: dict[str, Version]  # each with the first server that knows it


class Server(NamedTuple):
    """A server, and what it was made from."""

    version: Version
    tensorflow: str
    text: str  # version of tensorflow-text; a dash where it is that of the server before
    graph_def: int  # the newest GraphDef it reads


class ServerOps(NamedTuple):
    """The list: servers, oldest first, and ops by name."""

    servers: list[Server]
    ops: dict[str, Op]


def parse_version(text: str) -> Version:
    """2.20.1 to (2, 20)."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def show_version(version: Version) -> str:
    """(2, 20) to 2.20."""
    return ".".join(map(str, version))


def read(path: pathlib.Path = FILE) -> ServerOps:
    """Reads the list."""
    listed = ServerOps([], {})
    for line in path.read_text("utf-8").splitlines():
        fields = line.split("\t")
        if line.startswith("@"):
            version, tensorflow, text, graph_def = fields
            listed.servers.append(
                Server(parse_version(version[1:]), tensorflow, text, int(graph_def))
            )
        elif not line.startswith("#"):
            name, since, source, attributes = fields
            listed.ops[name] = _parse_op(since, source, attributes)
    return listed


def _parse_op(since: str, source: str, attributes: str) -> Op:
    pairs = (attribute.partition("@")[::2] for attribute in attributes.split())
    return Op(
        source,
        parse_version(since),
        {name: parse_version(later or since) for name, later in pairs},
    )


def write(listed: ServerOps, path: pathlib.Path = FILE) -> None:
    """Writes the list, ops in the order of the alphabet."""
    lines = [
        f"@{show_version(version)}\t{tensorflow}\t{text}\t{graph_def}\n"
        for version, tensorflow, text, graph_def in listed.servers
    ]
    for name, (source, since, attributes) in sorted(listed.ops.items()):
        shown = " ".join(
            attribute if version == since else f"{attribute}@{show_version(version)}"
            for attribute, version in sorted(attributes.items())
        )
        lines.append(f"{name}\t{show_version(since)}\t{source}\t{shown}\n")
    path.write_text(HEADER + "".join(lines), "utf-8")


def add(listed: ServerOps, server: Server, found: dict[str, tuple[str, list[str]]]) -> ServerOps:
    """The list with a server more, newer than those in it.

    Args:
        listed: the list so far.
        server: the server to add. Where its text is a dash, it has the text ops of the list.
        found: by name, for each op that it links where it is from, and its attributes.
    """
    as_before = server.text == "-"
    ops = {name: op for name, op in listed.ops.items() if as_before and op.source == TEXT}
    # Ops that were listed and are not found are lost: the newest server would refuse them.
    for name, (source, attributes) in found.items():
        known = listed.ops.get(name, Op(source, server.version, {}))
        brought = {a: known.attributes.get(a, server.version) for a in attributes}
        ops[name] = Op(source, known.since, brought)
    return ServerOps([*listed.servers, server], ops)


def linked(ops: Iterable, text: Container[str], on_cpu: Container[str], tests: Container[str]):
    """Of registered ops those a server links: by name where from, and the attributes.

    Args:
        ops: OpDefs.
        text: names of the ops that tensorflow-text brought.
        on_cpu: names of ops with a kernel for the CPU.
        tests: names of ops that TensorFlow's own tests are written with.
    """
    return {
        op.name: (
            TEXT if op.name in text else XLA if op.name.startswith("Xla") else CORE,
            [attribute.name for attribute in op.attr],
        )
        for op in ops
        if op.name in on_cpu
        and not op.name.startswith("_")
        and not op.HasField("deprecation")
        and op.name not in PYTHON_OPS
        and op.name not in tests
    }


def main() -> None:
    """Adds the server of the TensorFlow that runs this."""
    import tensorflow as tf
    from tensorflow.core.framework import kernel_def_pb2, op_def_pb2
    from tensorflow.python.client import pywrap_tf_session as c_api

    def registered():
        return op_def_pb2.OpList.FromString(c_api.TF_GetBuffer(c_api.TF_GetAllOpList())).op

    before = {op.name for op in registered()}
    try:
        import tensorflow_text  # noqa: F401  registers its ops

        text = importlib.metadata.version("tensorflow-text")
    except ImportError:
        text = "-"
    ops = registered()
    kernels = c_api.TF_GetBuffer(c_api.TF_GetAllRegisteredKernels())
    on_cpu = {
        kernel.op
        for kernel in kernel_def_pb2.KernelList.FromString(kernels).kernel
        if kernel.device_type in ("CPU", "DEFAULT")
    }
    version = parse_version(tf.__version__)
    server = Server(version, tf.__version__, text, tf.version.GRAPH_DEF_VERSION)
    listed = read() if FILE.exists() else ServerOps([], {})
    if listed.servers and version <= listed.servers[-1].version:
        raise SystemExit(f"{FILE} has {show_version(version)} or newer; delete it to start anew.")
    new = {op.name for op in ops} - before
    write(add(listed, server, linked(ops, new, on_cpu, _test_ops(tf))))


def _test_ops(tf) -> set[str]:
    """The ops in the module that TensorFlow generates for its tests'."""
    module = pathlib.Path(tf.__file__).parent / "python" / "framework" / "test_ops.py"
    return set(re.findall(r'_apply_op_helper\(\s*"([^"]+)"', module.read_text("utf-8")))


if __name__ == "__main__":
    main()
