"""tf_transformer/machine/imports.py: TensorFlow and Keras in little memory."""

import platform
import subprocess
import sys

import pytest

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


PAGES = """
import pathlib
import tensorflow as tf
from tf_transformer.machine.imports import forget_pages_of

def megabytes(kind):
    lines = pathlib.Path("/proc/self/status").read_text().split("\\n")
    (line,) = (line for line in lines if line.startswith(kind))
    return int(line.split()[1]) / 1024

before = megabytes("RssFile:"), megabytes("RssAnon:")
forget_pages_of("/tensorflow/")
after = megabytes("RssFile:"), megabytes("RssAnon:")
print(before[0] - after[0], before[1] - after[1])
assert tf.function(lambda x: x @ x)(tf.eye(2)).numpy().tolist() == [[1, 0], [0, 1]]
"""


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux tells its mappings")
def test_pages_of_files_leave_the_memory_and_no_others():
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    of_files, of_data = map(float, done.stdout.split())
    assert of_files > 100  # TensorFlow's libraries have about 700 MB
    assert abs(of_data) < 10
