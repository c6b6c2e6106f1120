"""The tree keeps its shape: imports flow one way, Keras-only code stays so."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tf_transformer"

# ARCHITECTURE.md draws these levels: a module imports modules of its own part and of lower levels.
LEVELS = [
    {"errors", "special_ids"},
    {"files", "kernels", "sequences"},
    {"layers", "config", "decoding", "tokenizer"},
    {"models", "data", "predictor", "training.loss"},
    {"run_folder"},
    {"weights", "search", "export.micro_batches"},
    {"export.graph", "saved_translator"},
    {"translator"},
    {"tasks"},
    {"training", "streaming", "export"},
    {"commands"},
    {"train.py", "evaluate.py", "translate.py"},
]
KERAS_ONLY = {
    *("errors", "special_ids", "files", "config", "sequences"),
    *("kernels", "layers", "models", "decoding"),
    *("training.loss", "training.metrics", "training.schedule"),
}


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def dotted(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: pathlib.Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part_of(name: str) -> str:
    """The part of the tree that a dotted name belongs to: the longest that `LEVELS` lists."""
    parts = sorted(set().union(*LEVELS), key=len, reverse=True)
    return next(part for part in parts if name == part or name.startswith(part + "."))


def level(part: str) -> int:
    return next(i for i, parts in enumerate(LEVELS) if part in parts)


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_flow_one_way(path):
    part = part_of(dotted(path))
    for name in imports(path):
        if name.startswith("tf_transformer."):
            other = part_of(name.removeprefix("tf_transformer."))
            assert other == part or level(other) < level(part), f"{part} imports {other}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_keras_only_code_imports_no_tensorflow(path):
    name = dotted(path)
    if name in KERAS_ONLY or name.split(".")[0] in KERAS_ONLY:
        assert not {n for n in imports(path) if n.split(".")[0].startswith("tensorflow")}


def test_nothing_in_the_package_reads_the_command_line():
    for path in modules():
        runs_alone = dotted(path).startswith(("commands", "export.run_in"))
        assert runs_alone or "sys.argv" not in path.read_text("utf-8"), path


def test_every_file_the_readme_names_exists():
    readme = (ROOT / "README.md").read_text("utf-8")
    named = re.findall(r"`((?:tf_transformer|configs|tests|export|examples)/[\w./-]+)`", readme)
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_every_test_that_architecture_names_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), f"{file}::{test}"
