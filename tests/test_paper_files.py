"""README names the files that hold the paper's sections 3.1 to 3.5, and they are few and short."""

import pathlib
import re
import sys

import numpy as np

import tf_transformer
from tf_transformer import Transformer

PACKAGE = pathlib.Path(tf_transformer.__file__).parent
README = pathlib.Path(__file__).parents[1] / "README.md"
MOST_LINES = 1250
EQUATION_1 = "kernels/attention.py"
# What else the forward pass of the default model enters: tuned forms, checks of its inputs, and
# the layout of heads.
ALSO = {
    *("kernels/__init__.py", "kernels/gradient.py", "kernels/layer_norm.py", "kernels/dropout.py"),
    *("layers/dropout.py", "layers/shape.py", "layers/dense.py", "layers/mask_checks.py"),
    *("layers/position_encoding.py", "layers/stored.py"),
    *("models/padding.py", "models/predicts_tokens.py"),
}


def named() -> list[str]:
    """The files in README's table of the paper, in its order."""
    section = README.read_text("utf-8").partition("## The paper beside the code")[2]
    rows = re.findall(r"^\| 3.*$", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"\(tf_transformer/([\w/]+\.py)\)", row)]


def lines(name: str) -> int:
    """The lines that a reader reads: equation 1 is followed by its tuned form."""
    text = (PACKAGE / name).read_text("utf-8")
    return len(
        (text.partition("\n\n\ndef attention(")[0] if name == EQUATION_1 else text).splitlines()
    )


def test_the_files_of_the_paper_are_few_and_short():
    files = named()
    assert EQUATION_1 in files
    assert len(files) == 10
    assert sum(map(lines, files)) <= MOST_LINES


def test_the_forward_pass_enters_the_files_of_the_paper_and_few_others():
    model = Transformer(vocabulary_size=11)
    model.build()
    entered = set()

    def record(frame, event, argument):
        if event == "call":
            entered.add(pathlib.Path(frame.f_code.co_filename))

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        model((np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])), training=True)
    finally:
        sys.setprofile(before)
    found = {str(path.relative_to(PACKAGE)) for path in entered if path.is_relative_to(PACKAGE)}
    found = {name for name in found if name.startswith(("layers/", "kernels/", "models/"))}
    assert found - ALSO == set(named())
