"""The tree keeps its shape: imports flow one way, Keras-only code stays so."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tf_transformer"

# ARCHITECTURE.md draws these levels; a module may import its own level's folder and lower ones.
LEVELS = [
    {"errors"},
    {"files", "layers"},
    {"config", "decoding", "tokenizer", "pieces"},
    {"model", "data"},
    {"tasks"},
    {"training", "incremental"},
    {"search"},
    {"serving", "saved_translator"},
    {"translator", "command_line"},
    {"streaming"},
    {"train.py", "evaluate.py", "translate.py", "export"},
]
MAY_IMPORT_TENSORFLOW = {
    *(
        "tokenizer",
        "data",
        "tasks",
        "search",
        "pieces",
        "serving",
        "saved_translator",
        "translator",
    ),
    *("training.strategy", "training.optimizer", "training.learner", "training.standing"),
    *("training.checkpoint", "training.reports", "training.trainer"),
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


def level(part: str) -> int:
    return next(i for i, parts in enumerate(LEVELS) if part in parts)


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_flow_one_way(path):
    part = dotted(path).split(".")[0]
    for name in imports(path):
        if name.startswith("tf_transformer."):
            other = name.split(".")[1]
            assert other == part or level(other) < level(part), f"{part} imports {other}"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_keras_only_code_imports_no_tensorflow(path):
    name = dotted(path)
    allowed = name in MAY_IMPORT_TENSORFLOW or name.split(".")[0] in MAY_IMPORT_TENSORFLOW
    if not allowed:
        assert not {n for n in imports(path) if n.split(".")[0].startswith("tensorflow")}


def test_every_module_has_a_level():
    assert {dotted(path).split(".")[0] for path in modules()} < set().union(*LEVELS)


def test_nothing_in_the_package_reads_the_command_line():
    for path in modules():
        assert "sys.argv" not in path.read_text("utf-8"), path


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
