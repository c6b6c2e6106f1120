"""The data folder, to which relative paths of text files are relative."""

import glob
import os
from dataclasses import replace
from typing import Any

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.files.local_paths import local_path
from tf_transformer.files.reading import split_paths

VARIABLE = "TF_TRANSFORMER_DATA"
_ONE = ("train_source", "train_target", "valid_source", "valid_target")
_SEVERAL = (
    "train_file",
    "valid_file",
    "tokenizer",
)  # some tasks take paths with commas between them


def in_folder(data: DataConfig) -> DataConfig:
    """Returns the options with paths that can be opened from the working folder.

    With `data.folder`, relative paths are relative to it. Without it, a path that exists stays as
    it is. A path that does not exist is relative to the folder in the environment variable
    `TF_TRANSFORMER_DATA`, if it is set. A run stores the paths as the user gave them.

    Example:
        >>> in_folder(DataConfig(folder="corpora", train_file="a.txt", valid_file="/b.txt"))
        DataConfig(..., train_file='corpora/a.txt', valid_file='/b.txt', ...)
    """
    paths: dict[str, Any] = {name: located(getattr(data, name), data.folder) for name in _ONE}
    for name in _SEVERAL:
        given = getattr(data, name)
        whole = located(given, data.folder)
        parts = [given] if os.path.exists(whole) else split_paths(given)
        paths[name] = ",".join(located(part, data.folder) for part in parts)
    for name in ("corpora", "valid_corpora"):
        paths[name] = tuple(_corpus(corpus, data.folder) for corpus in getattr(data, name))
    return replace(data, **paths)


def _corpus(corpus: Corpus, folder: str) -> Corpus:
    source, target, path = (
        located(given, folder) for given in (corpus.source, corpus.target, corpus.path)
    )
    return replace(corpus, source=source, target=target, path=path)


def located(path: str, folder: str) -> str:
    """Returns a path, or a pattern of paths, in the data folder; see `in_folder`. "" stays ""."""
    if path and folder:
        return os.path.join(folder, path)
    default = local_path(os.environ.get(VARIABLE, ""), VARIABLE)
    if not (path and default) or os.path.exists(path) or glob.glob(path):
        return path
    return os.path.join(default, path)
