"""Checks the files that options name, before TensorFlow is imported."""

from tf_transformer.files.reading import check_file
from tf_transformer.parsing.trees import tree_files


def check_files(task: str, *options: str) -> None:
    """Opens texts, or finds the bracket files of the task parsing; a task of a user has its own.

    Raises:
        InputError: when a file cannot be read.
    """
    for paths in filter(None, options):
        if task == "parsing":
            tree_files(paths)
        elif ":" not in task:
            check_file(paths)
