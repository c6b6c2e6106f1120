"""Checks the files that options name, before TensorFlow is imported."""

from tf_transformer.files.reading import check_file
from tf_transformer.parsing.trees import tree_files


def check_files(task: str, *options: str) -> None:
    """Opens the files of a command. For the task parsing, finds bracket files.

    A task outside the package (`module:attribute`) may have files in any form; nothing is opened.
    An empty path is ignored. A file that cannot be read is an `InputError`.
    """
    for paths in filter(None, options):
        if task == "parsing":
            tree_files(paths)
        elif ":" not in task:
            check_file(paths)
