"""The form of `findings/`; `make findings` runs them."""

import os
import pathlib
import re

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parents[1] / "findings").glob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_finding_has_its_form(script: pathlib.Path) -> None:
    lines = script.read_text("utf-8").splitlines()
    comment = [line for line in lines[1:] if line.startswith("#")]
    assert os.access(script, os.X_OK)
    assert comment[0].endswith(".")
    assert [line.split()[1] for line in comment if re.match("# [A-Z][a-z]+: ", line)][-4:] == [
        *("Guess:", "Seen:", "With:", "Effect:"),
    ]
    assert "folder=$(mktemp -d)" in lines
    packages = [word for line in lines if " install " in line for word in line.split("--quiet")[1:]]
    assert packages
    assert all("==" in package for package in " ".join(packages).split())
    assert "tf_transformer" not in "".join(lines)
