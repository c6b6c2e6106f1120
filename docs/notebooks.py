"""Executes the notebooks and stores their outputs: python -m docs.notebooks [NAME ...].

Without names, it executes all. Needs the extra `dev`.
"""

import base64
import io
import pathlib
import sys

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
COLORS = 64  # of stored pictures


def names() -> list[str]:
    """The names of all notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def execute(name: str, parameters: str = "") -> nbformat.NotebookNode:
    """A notebook with its outputs, executed in a process of its own.

    Args:
        name: of a file of `notebooks/`, without its suffix.
        parameters: replaces the cell with the tag `parameters`.

    Raises:
        nbclient.exceptions.CellExecutionError: when a cell fails.
    """
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    if parameters:
        (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
        cell.source = parameters
    client = NotebookClient(
        notebook,
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(FOLDER)}},  # the working directory
    )
    return client.execute()


def store(name: str) -> None:
    """Executes a notebook and writes it back with small outputs, without standard error."""
    notebook = execute(name)
    notebook.metadata.language_info = {"name": "python"}  # as it is for every version of Python
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                _make_small(output)
    nbformat.write(notebook, FOLDER / f"{name}.ipynb")


def _make_small(output: nbformat.NotebookNode) -> None:
    """Reduces the colors of a picture, and ends lines of a terminal as lines of a file."""
    if "text" in output:
        output.text = output.text.replace("\r\n", "\n")
    if picture := output.get("data", {}).get("image/png"):
        file = io.BytesIO()
        with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
            image.convert("RGB").quantize(COLORS).save(file, "png", optimize=True)
        output.data["image/png"] = base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        store(name)
        print(f"executed notebooks/{name}.ipynb")
