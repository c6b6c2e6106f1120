"""Translates with an ONNX folder: python export/run_in_onnx.py served/x-onnx < in.txt.

This script runs the package's file by its path, without an import of the package.
"""

import pathlib
import runpy

if __name__ == "__main__":
    package = pathlib.Path(__file__).parents[1] / "tf_transformer"
    streams = runpy.run_path(str(package / "commands" / "standard_streams.py"))
    with streams["standard_streams"]():
        runpy.run_path(str(package / "export" / "run_in_onnx.py"), run_name="__main__")
