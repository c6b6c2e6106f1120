"""tf_transformer/machine/imports.py: TensorFlow and Keras without optional packages."""

import subprocess
import sys

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})  # a package jax that says when it is imported
from tf_transformer.machine.imports import import_tensorflow
import_tensorflow()
print("keras")
import jax
"""


def test_tensorflow_imports_no_optional_package_and_other_code_does(tmp_path):
    (tmp_path / "jax.py").write_text("print('jax')")
    program = [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["keras", "jax"]
